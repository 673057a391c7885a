"""MoveToHiLo on the database: what is refused and kept, and what a crash leaves."""

import uuid
from functools import partial

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError
from django.db import connection, migrations, models
from django.db.migrations.optimizer import MigrationOptimizer
from django.db.migrations.writer import MigrationWriter

from django_hilo._allocation import memory
from django_hilo._allocation.find import resolve
from django_hilo._operations.process_hooks import check_plan
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.moving import MoveToHiLo, operations
from tests.support.commands import told_by
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.moving_stage import (
    APP,
    Broken,
    Stage,
    failing_before,
    item,
    log_of,
    move_owner,
    owner,
)
from tests.support.sql import hide_table

pytestmark = pytest.mark.servers

BIG = models.BigAutoField
REFERENCES = {("moved_item", "owner_id"), ("moved_owner", "parent_id")}


@pytest.fixture
def stage(transactional_db):
    memory.after_fork_in_child()
    stage = Stage()
    yield stage
    stage.drop()


def fill(stage, *keys):
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    for key in keys:
        owners.create(pk=key, name=str(key), parent_id=keys[0])
        items.create(owner_id=key)


def make(stage, *keys, key=BIG):
    stage.migrate(owner(key(primary_key=True)), item())
    fill(stage, *keys)


def contents(stage):
    """Return names with what they refer to."""
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    return (
        sorted(owners.values_list("name", "parent__name")),
        sorted(items.values_list("owner__name", flat=True)),
    )


def execute(*statements):
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def condition(condition, model="Item"):
    constraint = models.CheckConstraint(condition=condition, name="one")
    return migrations.AddConstraint(model, constraint)


unique = migrations.AddConstraint(
    "Item",
    models.UniqueConstraint(fields=["id"], condition=models.Q(owner__gt=1), name="one"),
)


def ids(stage):
    return sorted(stage.model("Owner").objects.values_list("id", flat=True))


@pytest.mark.parametrize(
    ("options", "hilo", "expected"),
    [
        ({}, {}, "owners/7-A"),
        ({"width": 5}, {}, "owners/00007-A"),
        ({"collection": "O-x"}, {"SHOW_NODE_TAG": False}, "O-x/7"),
        ({}, {"SEPARATOR": "'", "NODE_TAG": "ABCD"}, "owners'7-ABCD"),
        ({}, {"SEPARATOR": "\\"}, "owners\\7-A"),
        ({}, {"SEPARATOR": "%"}, "owners%7-A"),
    ],
)
def test_ids_are_as_the_field_makes_them(stage, settings, options, hilo, expected):
    settings.HILO = {**settings.HILO, "NODE_TAG": "A", **hilo}
    make(stage, 7, 123456)
    stage.migrate(move_owner(field=HiLoField(primary_key=True, **options)))
    assert expected in ids(stage)
    long = expected.replace("00007", "123456").replace("7", "123456")
    assert long in ids(stage)
    made = stage.model("Owner").objects.create().pk
    assert made == long.replace("123456", "123457")
    stage.model("Owner").objects.filter(pk=made).delete()
    stage.undo()
    assert ids(stage) == [7, 123456]


@pytest.mark.parametrize("key", [models.AutoField, BIG, HiLoBigAutoField])
def test_the_key_may_be_any_integer(stage, key):
    stage.migrate(owner(key(primary_key=True)), item())
    highest = {models.AutoField: 2**31 - 2, BIG: 10**18}.get(key, 10**8)
    fill(stage, 1, 7, highest)
    before = contents(stage)
    stage.migrate(move_owner())
    assert set(ids(stage)) == {f"owners/{n}-A" for n in (1, 7, highest)}
    assert contents(stage) == before
    assert stage.model("Owner").objects.create().pk == f"owners/{highest + 1}-A"
    stage.model("Owner").objects.filter(name="").delete()
    stage.undo()
    assert ids(stage) == [1, 7, highest]
    assert contents(stage) == before
    stage.migrate(move_owner())
    assert stage.model("Owner").objects.create().pk == f"owners/{highest + 2}-A"


def test_the_way_back_leaves_the_counter_of_the_ids(stage):
    """hilo_show names both counters of the model; PostgreSQL has a sequence of one."""
    stage.migrate(owner(HiLoBigAutoField(primary_key=True)), item())
    fill(stage, 7)
    stage.migrate(move_owner())
    assert stage.model("Owner").objects.create().pk == "owners/8-A"
    stage.undo()
    assert stage.model("Owner").objects.create().pk > 8
    lines = told_by("hilo_show", database="default").splitlines()
    shown = [line.split()[1:3] for line in lines if "owner" in line]
    integers = [] if CHOSEN == "postgres" else [["moved_owner", "-"]]
    assert shown == [*integers, ["owners", "A"]]


def test_an_empty_table_needs_no_counter(stage):
    """As in a squashed migration, which makes the tables as well."""
    stage.migrate(owner(BIG(primary_key=True)), item(), move_owner())
    assert not HiLoDocument.objects.exists()
    assert stage.model("Owner").objects.create().pk == "owners/1-A"
    assert foreign_keys() == REFERENCES
    stage.undo()


@pytest.mark.parametrize("key", [BIG, models.UUIDField])
def test_empty_tables_do_without_the_home_of_the_counters(stage, settings, key):
    """Which is made after them, where test databases are made from nothing."""
    settings.HILO = {**settings.HILO, "DATABASE": "other"}  # no access to it here
    stage.migrate(owner(key(primary_key=True)), item(), move_owner())
    assert stage.model("Owner")._meta.pk.get_internal_type() == "CharField"
    assert foreign_keys() == REFERENCES


@pytest.mark.parametrize("key", [0, -3])
def test_numbers_under_one_are_refused(stage, key):
    make(stage, 5, 6)
    with connection.constraint_checks_disabled():
        stage.model("Item").objects.all().delete()
        execute(f"UPDATE moved_owner SET id = {key} WHERE id = 6")
    with pytest.raises(HiLoError, match=rf"Owner.id has {key}, .* at least 1"):
        stage.migrate(move_owner())
    assert ids(stage) == [key, 5]


def test_an_id_that_is_too_long_is_refused(stage):
    make(stage, 12345)
    field = HiLoField(primary_key=True, max_length=13)
    with pytest.raises(HiLoError, match="'owners/12345-A' has 14 .* allows 13"):
        stage.migrate(move_owner(field=field))
    stage.migrate(move_owner(field=HiLoField(primary_key=True, max_length=14)))
    assert ids(stage) == ["owners/12345-A"]


@pytest.mark.parametrize(
    ("odd", "match"),
    [
        ("owners/x/3-B", "'owners/3-A' and 'owners/x/3-B' have the"),
        ("managers/Ann", "'managers/Ann' has none"),
    ],
)
def test_ids_without_a_number_of_their_own_do_not_go_back(stage, odd, match):
    stage.migrate(owner(BIG(primary_key=True)), item())
    stage.migrate(move_owner())
    fill(stage, "owners/3-A", odd, "owners/4-A")
    before = contents(stage), ids(stage)
    with pytest.raises(HiLoError, match=match):
        stage.undo()
    assert (contents(stage), ids(stage)) == before
    stage.model("Item").objects.filter(owner=odd).delete()
    stage.model("Owner").objects.filter(pk=odd).delete()
    stage.undo()
    assert ids(stage) == [3, 4]


def test_a_number_over_the_type_does_not_go_back(stage, settings):
    settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 2**40}
    stage.migrate(owner(models.AutoField(primary_key=True)), item())
    stage.migrate(move_owner())
    fill(stage, "owners/3-A", f"owners/{2**31}-A")
    if CHOSEN == "sqlite":
        stage.undo()  # its integers have eight bytes, whatever they are called
        assert ids(stage) == [3, 2**31]
        return
    with pytest.raises(HiLoError, match=f"{2**31}-A' is above {2**31 - 1}"):
        stage.undo()
    assert len(ids(stage)) == 2


def test_references_without_constraint(stage):
    stage.migrate(owner(BIG(primary_key=True)), item(db_constraint=False))
    fill(stage, 5)
    stage.model("Item").objects.create(owner_id=77)
    stage.migrate(move_owner())
    items = stage.model("Item").objects.values_list("owner_id", flat=True)
    assert set(items) == {"owners/5-A", "owners/77-A"}
    stage.model("Item").objects.create(owner_id="owners/5-B")
    with pytest.raises(
        HiLoError, match="Item.owner cannot .*'owners/5-B' is not the id"
    ):
        stage.undo()
    stage.model("Item").objects.filter(owner_id="owners/5-B").delete()
    stage.undo()
    items = stage.model("Item").objects.values_list("owner_id", flat=True)
    assert set(items) == {5, 77}


def test_uuids_of_no_row_are_refused(stage):
    stage.migrate(owner(models.UUIDField(primary_key=True)), item(db_constraint=False))
    fill(stage, uuid.uuid4())
    stray = uuid.uuid4()
    stage.model("Item").objects.create(owner_id=stray)
    with pytest.raises(
        HiLoError, match="Item.owner refers to .*not a row of moved.Owner"
    ):
        stage.migrate(move_owner())
    stage.model("Item").objects.filter(owner_id=stray).delete()
    stage.migrate(move_owner())
    assert ids(stage) == ["owners/1-A"]


def test_uuids_in_an_order(stage):
    stage.migrate(owner(models.UUIDField(primary_key=True)), item())
    for name in "bca":
        stage.model("Owner").objects.create(pk=uuid.uuid4(), name=name)
    stage.migrate(move_owner(order_by=["-name"]))
    named = dict(stage.model("Owner").objects.values_list("name", "id"))
    assert named == {"c": "owners/1-A", "b": "owners/2-A", "a": "owners/3-A"}
    assert stage.model("Owner").objects.create().pk == "owners/4-A"


@pytest.mark.parametrize("order_by", [["nam"], ["parent__name"], ["name", "-made"]])
def test_an_order_that_is_not_there_is_refused(stage, order_by):
    stage.migrate(owner(models.UUIDField(primary_key=True)), item())
    with pytest.raises(
        HiLoError, match="order_by contains .* Choose from: id, name, par"
    ):
        stage.migrate(move_owner(order_by=order_by))
    assert stage.model("Owner").objects.count() == 0
    with pytest.raises(
        TypeError, match=r"order_by must be a list of names: \['name'\]"
    ):
        move_owner(order_by="name")


class Char32UUIDField(models.UUIDField):
    """As Django's release notes write it, for columns of before MariaDB 10.7."""

    def db_type(self, connection):
        return "char(32)"

    def get_db_prep_value(self, value, connection, prepared=False):
        value = super().get_db_prep_value(value, connection, prepared)
        return value.hex if isinstance(value, uuid.UUID) else value


@pytest.mark.skipif(CHOSEN == "postgres", reason="PostgreSQL always had the type.")
def test_uuids_in_columns_of_before_there_was_the_type(stage):
    stage.migrate(owner(Char32UUIDField(primary_key=True)), item())
    key = uuid.uuid4()
    fill(stage, key)
    entry = log_of(key)
    stage.migrate(move_owner())
    entry.refresh_from_db()
    assert [entry.object_id] == ids(stage)
    stage.model("Owner").objects.create(name="new")
    stage.undo()
    entry.refresh_from_db()
    assert entry.object_id == str(key)
    assert stage.model("Owner").objects.get(pk=key).name == str(key)
    assert stage.model("Owner").objects.get(name="new").pk.version == 4


@pytest.mark.skipif(not IS_MYSQL, reason="Others roll back all of it.")
def test_a_crash_after_the_way_back_of_uuids(stage):
    """Before it is recorded, or in the next operation of the migration."""
    stage.migrate(owner(models.UUIDField(primary_key=True)), item())
    key = uuid.uuid4()
    fill(stage, key)
    entry = log_of(key)
    stage.migrate(move_owner())
    with connection.schema_editor() as editor:
        stage.done[-1].unapply(stage.states[-2].clone(), editor)
    stage.undo()
    entry.refresh_from_db()
    assert entry.object_id == str(key)
    assert ids(stage) == [key]


def test_the_log_of_the_admin_follows(stage):
    make(stage, 5)
    entry = log_of(5)
    type = ContentType.objects.get_for_model(User)
    for number, change in enumerate(
        [{"object_id": "99"}, {"object_id": "no key"}, {"content_type": type}], 1
    ):
        values = {"content_type": entry.content_type, "object_id": "5", **change}
        LogEntry.objects.create(
            pk=entry.pk + number, user=entry.user, action_flag=ADDITION, **values
        )

    def logged():
        return [each.object_id for each in LogEntry.objects.order_by("pk")]

    stage.migrate(move_owner())
    assert logged() == ["owners/5-A", "owners/99-A", "no key", "5"]
    stage.undo()
    assert logged() == ["5", "99", "no key", "5"]


def test_columns_that_are_not_there_are_refused(stage):
    stage.migrate(owner(BIG(primary_key=True)))
    generic = {"admin.LogEntry": ("content_type", "objekt")}
    with pytest.raises(
        HiLoError, match="generic contains 'admin.LogEntry' with .*objekt"
    ):
        stage.migrate(move_owner(generic=generic))
    # As a column that is to hold text.
    log_of(5)
    generic = {"admin.LogEntry": ("content_type", "action_flag")}
    with pytest.raises(HiLoError, match=r"LogEntry.action_flag .*no text.*CharField\("):
        stage.migrate(move_owner(generic=generic))


@pytest.mark.parametrize(
    ("computed", "match"),
    [
        (
            migrations.AddField(
                "Item",
                "twice",
                models.GeneratedField(
                    expression=models.F("owner") * 2,
                    output_field=models.BigIntegerField(),
                    db_persist=True,
                ),
            ),
            "'twice' of moved.Item computes with moved.Item.owner",
        ),
        (condition(models.Q(owner__gt=0)), "'one' of moved.Item computes with"),
        (unique, None if IS_MYSQL else "'one' of moved.Item computes with"),
        (condition(models.Q(owner__isnull=False)), None),
        pytest.param(
            condition(models.Q(id=models.F("parent")) | ~models.Q(name=""), "Owner"),
            None,
            marks=pytest.mark.skipif(
                IS_MYSQL, reason="MySQL checks no AUTO_INCREMENT column."
            ),
        ),
    ],
)
def test_what_computes_with_the_key_is_refused(stage, computed, match):
    """SQLite would go on to compute, with the text."""
    make(stage, 1, 7)
    stage.migrate(computed)
    if match is None:
        stage.migrate(move_owner())
        assert ids(stage) == ["owners/1-A", "owners/7-A"]
        return
    with pytest.raises(HiLoError, match=match):
        stage.migrate(move_owner())
    assert ids(stage) == [1, 7]


def test_a_foreign_key_of_an_unknown_table_is_refused(stage):
    make(stage, 5)
    execute(
        "CREATE TABLE moved_stranger (n bigint, CONSTRAINT stranger "
        "FOREIGN KEY (n) REFERENCES moved_owner (id))"
    )
    with pytest.raises(HiLoError, match="moved_stranger.n refers to moved.Owner.id"):
        stage.migrate(move_owner())
    assert ids(stage) == [5]


@pytest.mark.skipif(CHOSEN != "postgres", reason="Others have no such views.")
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_views_are_named_before_anything_is_changed(stage, back):
    make(stage, 5)
    if back:
        stage.migrate(move_owner())
    execute(
        "CREATE VIEW moved_a AS SELECT owner_id FROM moved_item",
        "CREATE MATERIALIZED VIEW moved_b AS SELECT * FROM moved_a",
        "CREATE VIEW moved_names AS SELECT name FROM moved_owner",
    )
    try:
        with pytest.raises(
            HiLoError, match=r"it: view moved_a, materialized view moved_b\. "
        ):
            stage.undo() if back else stage.migrate(move_owner())
        assert ids(stage) == (["owners/5-A"] if back else [5])
        execute("DROP VIEW moved_a CASCADE")
        stage.undo() if back else stage.migrate(move_owner())
    finally:
        execute("DROP VIEW IF EXISTS moved_a, moved_names CASCADE")


@pytest.mark.parametrize("key", ["integer", "uuid"])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_crash_between_steps(stage, monkeypatch, back, key):
    """Where DDL is transactional nothing has happened; elsewhere it can be repeated."""
    if key == "integer":
        stage.migrate(
            owner(BIG(primary_key=True), unique_together={("parent", "name")}), item()
        )
        keys = [1, 2, 30]
    else:
        stage.migrate(owner(models.UUIDField(primary_key=True)), item())
        keys = [uuid.uuid4() for _ in range(3)]
    fill(stage, *keys)
    expected = contents(stage)
    if back:
        stage.migrate(move_owner())
    goes = stage.undo if back else lambda: stage.migrate(move_owner())
    for number in range(100):
        mend = failing_before(monkeypatch, number)
        try:
            goes()
        except Broken:
            mend()
            if not IS_MYSQL:
                assert contents(stage) == expected
            continue
        mend()
        break
    assert 5 <= number < 100
    assert contents(stage) == expected
    if back:
        assert ids(stage) == sorted(keys)
    else:
        assert len(ids(stage)) == 3
        made = stage.model("Owner").objects.create().pk
        assert int(made.split("/")[1].split("-")[0]) > 3
    assert foreign_keys() == REFERENCES


@pytest.mark.parametrize("key", [BIG, models.UUIDField])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_crash_between_steps_of_several_moves(stage, monkeypatch, back, key):
    default = {"default": uuid.uuid4} if key is models.UUIDField else {}
    field = key(primary_key=True, **default)
    last = models.ForeignKey(
        f"{APP}.item", models.SET_NULL, null=True, related_name="+"
    )
    stage.migrate(
        owner(field), item(key=field), migrations.AddField("Owner", "last", last)
    )
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    for name in "abc":
        made = owners.create(name=name)
        owners.filter(name=name).update(last=items.create(owner=made).pk)
    moves = [move_owner(), MoveToHiLo("item", "id", HiLoField(primary_key=True))]
    monkeypatch.setattr(operations, "together", lambda operation: moves)

    def related():
        rows = stage.model("Item").objects.values_list("owner__last", "owner__name")
        pairs = rows.filter(owner__last=models.F("id"))
        return sorted(name for _, name in pairs)

    if back:
        stage.migrate(*moves)
    goes = stage.undo if back else lambda: stage.migrate(*moves)
    for number in range(100):
        mend = failing_before(monkeypatch, number)
        try:
            goes()
        except Broken:
            mend()
            continue
        mend()
        break
    assert 7 <= number < 100
    assert related() == ["a", "b", "c"]
    assert foreign_keys() == {("moved_item", "owner_id")} | {
        ("moved_owner", name) for name in ("last_id", "parent_id")
    }


def constraints():
    """Return (table, name, what it is) of each."""
    with connection.cursor() as cursor:
        return [
            (table, name, about)
            for table in ("moved_item", "moved_owner")
            for name, about in connection.introspection.get_constraints(
                cursor, table
            ).items()
        ]


def foreign_keys():
    return {
        (t, each["columns"][0]) for t, _, each in constraints() if each["foreign_key"]
    }


def test_constraints_keep_their_names(stage):
    unique = models.UniqueConstraint(fields=["id", "name"], name="unique_pair")
    index = models.Index(fields=["parent", "-id"], name="an_index")
    stage.migrate(
        owner(
            BIG(primary_key=True),
            unique_together={("parent", "name")},
            constraints=[unique],
            indexes=[index],
        ),
        item(),
    )
    fill(stage, 1, 2)

    def names():
        return {
            (table, name): (about["columns"], about["unique"])
            for table, name, about in constraints()
            # SQLite has names of its own for those of a CREATE TABLE.
            if not name.startswith(("__", "sqlite_"))
        }

    before = names()
    assert ("moved_owner", "unique_pair") in before
    stage.migrate(move_owner())
    assert names() == before
    stage.undo()
    assert names() == before


def test_it_is_written_into_migrations():
    operation = MoveToHiLo(
        "owner", "id", HiLoField(primary_key=True), {"a.B": ("c", "d")}, ["made"]
    )
    migration = type("Migration", (migrations.Migration,), {"operations": [operation]})
    text = MigrationWriter(migration("0002", APP), include_header=False).as_string()
    names: dict = {}
    exec(text, names)
    (again,) = names["Migration"].operations
    assert again.deconstruct()[2].keys() == operation.deconstruct()[2].keys()
    assert again.generic == operation.generic
    assert again.order_by == operation.order_by
    assert again.describe() == "Move owner.id to HiLo ids"
    assert again.migration_name_fragment == "move_owner_to_hilo"


def test_no_optimizer_leaves_it_out():
    made, moved = owner(BIG(primary_key=True)), move_owner()
    later = migrations.AlterField(
        "owner", "id", HiLoField(primary_key=True, max_length=80)
    )
    other = migrations.AddField("owner", "note", models.TextField(default=""))
    optimized = MigrationOptimizer().optimize([moved, other, later], APP)
    assert moved in optimized
    assert moved in MigrationOptimizer().optimize([made, other, moved, later], APP)


@pytest.mark.parametrize("wrong", [{"anchor": "parent"}, {"convention": str}])
def test_anchors_and_conventions_are_refused(wrong):
    with pytest.raises(ValueError, match="AlterField after it"):
        move_owner(field=HiLoField(primary_key=True, **wrong))


def test_other_fields_are_refused(stage):
    with pytest.raises(TypeError, match="requires a HiLoField"):
        MoveToHiLo("owner", "id", BIG(primary_key=True))
    stage.migrate(owner(models.CharField(max_length=9, primary_key=True)))
    with pytest.raises(HiLoError, match="is a CharField, not an integer"):
        stage.migrate(move_owner())
    with pytest.raises(HiLoError, match="is not a primary key"):
        stage.migrate(MoveToHiLo("owner", "name", HiLoField()))


def test_the_server_prefix_stands_in_the_ids(stage):
    make(stage, 5)
    ServerPrefix.objects.create(node_tag="A", prefix="North9/")
    stage.migrate(move_owner())
    assert ids(stage) == ["owners/North9/5-A"]
    assert stage.model("Owner").objects.create().pk == "owners/North9/6-A"
    stage.model("Owner").objects.filter(name="").delete()
    stage.undo()
    assert ids(stage) == [5]


@pytest.mark.skipif(not IS_MYSQL, reason="MariaDB compares collations.")
@pytest.mark.parametrize("key", [BIG, models.UUIDField])
def test_tables_of_another_collation(stage, key):
    """Columns of two collations cannot refer to each other: all get the key's."""
    stage.migrate(owner(key(primary_key=True)), item())
    execute("ALTER TABLE moved_owner DEFAULT COLLATE utf8mb4_unicode_ci")
    execute("ALTER TABLE moved_item DEFAULT COLLATE utf8mb4_bin")
    keys = [5, 6] if key is BIG else [uuid.uuid4(), uuid.uuid4()]
    fill(stage, *keys)
    before = contents(stage)
    stage.migrate(move_owner())
    assert contents(stage) == before
    fill(stage, "owners/90-A")
    before = contents(stage)
    entry = log_of("owners/90-A")
    stage.undo()
    assert contents(stage) == before
    entry.refresh_from_db()
    assert entry.object_id == str(
        stage.model("Owner").objects.get(name="owners/90-A").pk
    )


@pytest.mark.skipif(CHOSEN != "postgres", reason="Django before 4.1 made these.")
def test_a_serial_column(stage):
    stage.migrate(owner(BIG(primary_key=True)), item())
    execute(
        "ALTER TABLE moved_owner ALTER id DROP IDENTITY",
        "CREATE SEQUENCE moved_numbers OWNED BY moved_owner.id",
        "ALTER TABLE moved_owner ALTER id SET DEFAULT nextval('moved_numbers')",
    )
    for name in "abc":
        stage.model("Owner").objects.create(name=name)
    stage.model("Owner").objects.filter(name="c").delete()
    stage.migrate(move_owner(field=HiLoField(primary_key=True, db_collation="C")))
    assert ids(stage) == ["owners/1-A", "owners/2-A"]
    assert stage.model("Owner").objects.create().pk == "owners/4-A"
    stage.undo()
    made = stage.model("Owner").objects.create().pk
    assert made > 4


@pytest.mark.skipif(CHOSEN != "postgres", reason="Django's way to name a schema.")
def test_a_table_in_a_schema(stage):
    execute('CREATE SCHEMA "moved Schema"')
    try:
        table = '"moved Schema"."The owner\'s"'
        stage.migrate(owner(BIG(primary_key=True), db_table=table), item())
        fill(stage, 5, 6)
        before = contents(stage)
        stage.migrate(move_owner())
        assert ids(stage) == ["owners/5-A", "owners/6-A"]
        assert contents(stage) == before
        stage.undo()
        assert ids(stage) == [5, 6]
    finally:
        execute('DROP SCHEMA "moved Schema" CASCADE')


def test_a_migration_that_is_not_atomic(stage, monkeypatch):
    """PostgreSQL and SQLite make one transaction of it all the same."""
    make(stage, 5, 6)
    before = contents(stage)
    migration = migrations.Migration("some", APP)
    migration.atomic, migration.operations = False, [move_owner()]
    mend = failing_before(monkeypatch, 4)
    with pytest.raises(Broken), connection.schema_editor(atomic=False) as editor:
        migration.apply(stage.states[-1].clone(), editor)
    mend()
    if not IS_MYSQL:
        assert contents(stage) == before
    stage.migrate(move_owner())
    assert contents(stage) == before


def test_missing_tables_of_ours_are_told(stage, monkeypatch):
    stage.migrate(owner(BIG(primary_key=True)))
    hide_table(HiLoDocument, monkeypatch)
    with pytest.raises(HiLoError, match=r'add \("django_hilo", "0001_initial"\)'):
        stage.migrate(move_owner())


@pytest.mark.django_db(databases=["default", "other"], transaction=True)
def test_each_database_has_its_own_tag(stage):
    stage.migrate(owner(BIG(primary_key=True)), move_owner())
    field = stage.model("Owner")._meta.get_field("id")
    assert resolve(field, "other").next_format().text(7) == "owners/7-B"
    assert resolve(field, "default").next_format().text(7) == "owners/7-A"


def alter(field=None, model="owner"):
    field = field or HiLoField(primary_key=True)
    return migrations.AlterField(model, "id", field)


def plain(*operations, **attributes):
    """Return a plan with an AlterField in place of MoveToHiLo."""
    migration = migrations.Migration("plain", APP)
    vars(migration).update(operations=operations or [alter()], **attributes)
    return [(migration, False)]


DECIMAL = partial(models.DecimalField, max_digits=9, decimal_places=0)
TO_ROOT = partial(models.OneToOneField, f"{APP}.root", models.CASCADE)


@pytest.mark.parametrize("key", [BIG, models.UUIDField, DECIMAL, TO_ROOT])
def test_a_plain_alter_field_is_refused_on_rows(stage, key):
    root = migrations.CreateModel("Root", [("id", BIG(primary_key=True))])
    stage.migrate(root, owner(key(primary_key=True)), item())

    def check(plan):
        check_plan(plan=plan, apps=stage.states[-1].apps, using="default")

    later = alter()
    check(plain(later))  # there is nothing to convert
    stage.model("Root").objects.create(pk=7)
    stage.model("Owner").objects.create(pk=7)
    with pytest.raises(CommandError, match=r"MoveToHiLo.*hilo_move_plan moved --write"):
        check(plain())
    rename = migrations.RenameModel("owner", "person")
    with pytest.raises(CommandError, match="'moved_owner' on 'default' has rows"):
        check(plain(rename, alter(model="person")))
    with pytest.raises(CommandError, match="'moved_owner' on 'default' has rows"):
        stage.migrate(later)
    text = models.CharField(max_length=64, primary_key=True)
    check(plain(hilo_keeps_keys=True))
    check(plain(alter(text)))
    check(plain(alter(text, "root"), alter(TO_ROOT(primary_key=True)), alter()))
    check([(plain()[0][0], True)])
    check(plain(move_owner(), alter()))
    stage.model("Owner").objects.all().delete()
    stage.migrate(later)
    stage.model("Owner").objects.create()
    check(plain(alter(HiLoField(primary_key=True, capacity=64))))
