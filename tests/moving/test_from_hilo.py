"""MoveFromHiLo on the database: from ids that were there from the beginning."""

from functools import partial

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError
from django.db import DatabaseError, connection, migrations, models
from django.db.migrations.writer import MigrationWriter
from django.db.models.functions import Upper

from django_hilo._allocation import memory
from django_hilo._operations.process_hooks import check_plan
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.identifiers import parse
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.moving import MoveFromHiLo, MoveToHiLo, altered_keys, operations
from tests.support.databases import IS_MYSQL
from tests.support.moving_stage import (
    APP,
    Broken,
    Stage,
    failing_before,
    item,
    log_of,
    owner,
)

pytestmark = pytest.mark.servers

BIG = models.BigAutoField


def hilo(**options):
    return HiLoField(primary_key=True, **options)


def from_hilo(key=BIG, model="owner"):
    return MoveFromHiLo(model, "id", key(primary_key=True))


@pytest.fixture
def stage(transactional_db):
    memory.after_fork_in_child()
    stage = Stage()
    yield stage
    stage.drop()


def make(stage, *ids, key=None):
    """Make owners with ids, or with new ones: a, b and c."""
    stage.migrate(owner(key or hilo()), item())
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    first = None
    for name, id in zip("abc", ids or [None] * 3, strict=False):
        made = owners.create(name=name, parent=first, **({"id": id} if id else {}))
        first = first or made
        items.create(owner=made)


def ids(stage):
    return dict(stage.model("Owner").objects.values_list("name", "id"))


def related(stage):
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    return (
        sorted(owners.values_list("name", "parent__name")),
        sorted(items.values_list("owner__name", flat=True)),
    )


FAMILY = [("a", None), ("b", "a"), ("c", "a")], ["a", "b", "c"]


@pytest.mark.parametrize("key", [models.AutoField, BIG, HiLoBigAutoField])
def test_numbers_stay_and_new_ones_are_above_all(stage, key):
    make(stage)
    most = HiLoDocument.objects.get(pk="owners/A").max
    stage.migrate(from_hilo(key))
    assert ids(stage) == {"a": 1, "b": 2, "c": 3}
    assert related(stage) == FAMILY
    made = stage.model("Owner").objects.create().pk
    assert made == most + 1
    stage.undo()
    named = ids(stage)
    assert named.pop("") == f"owners/{made}-A"
    assert named == {"a": "owners/1-A", "b": "owners/2-A", "c": "owners/3-A"}
    assert related(stage)[1] == FAMILY[1]
    memory.after_fork_in_child()
    assert parse(stage.model("Owner").objects.create().pk).number > made


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        (hilo(anchor="name"), ["owners/4-A$a", "owners/5-B$7", "owners/6"]),
        (hilo(any_id=True, width=4), ["owners/0004-A", "x.5", "north/owners/6"]),
    ],
)
def test_other_shapes(stage, key, texts):
    make(stage, *texts[:1], *texts[2:], key=key)
    stage.migrate(from_hilo())
    assert list(ids(stage).values()) == [4, 6]


def test_numbers_that_clash_are_given_anew_by_way_of_uuids(stage):
    make(stage, "owners/7-A", "owners/7-B", "owners/Ann")
    HiLoDocument.objects.create(collection="owners", node_tag="B", max=500)
    with pytest.raises(HiLoError, match="has none|have the same one"):
        stage.migrate(from_hilo())
    assert ids(stage)["a"] == "owners/7-A"
    stage.migrate(from_hilo(models.UUIDField))
    assert related(stage) == FAMILY
    stage.migrate(MoveToHiLo("owner", "id", hilo(), order_by=["-name"]))
    stage.migrate(from_hilo())
    assert related(stage) == FAMILY
    new = ids(stage)
    assert 500 < new["c"] < new["b"] < new["a"]


@pytest.mark.parametrize(
    ("counter", "last"),
    [
        (HiLoDocument, {"node_tag": "B", "max": 500}),
        (HiLoDocument, {"node_tag": "B", "floor": 500}),
        (GaplessCounter, {"last": 500}),
    ],
)
def test_new_numbers_are_above_every_counter(stage, counter, last):
    make(stage)
    counter.objects.create(collection="owners", **last)
    stage.migrate(from_hilo())
    assert stage.model("Owner").objects.create().pk == 501


def test_generic_keys_of_no_row_do_not_become_those_of_another(stage):
    make(stage, "owners/33-A", "owners/4-A$7")
    entry = log_of("owners/33-B")
    theirs = {"content_type": ContentType.objects.get_for_model(User)}
    for number, (id, options) in enumerate(
        [("33-A", {}), ("99-B", {}), ("4-A$7", {}), ("4-B", theirs)], 1
    ):
        values = {"content_type": entry.content_type, **options}
        LogEntry.objects.create(
            pk=entry.pk + number,
            user=entry.user,
            action_flag=ADDITION,
            object_id=f"owners/{id}",
            **values,
        )
    with pytest.raises(
        HiLoError,
        match="LogEntry.object_id cannot go back to numbers: 'owners/33-B' is not the "
        "id of a row, .* Change or delete such rows of 'django_admin_log' first",
    ):
        stage.migrate(from_hilo())
    assert set(ids(stage).values()) == {"owners/33-A", "owners/4-A$7"}
    entry.delete()
    stage.migrate(from_hilo())
    logged = LogEntry.objects.order_by("pk").values_list("object_id", flat=True)
    assert list(logged) == ["33", "99", "4", "owners/4-B"]


@pytest.mark.parametrize("key", [BIG, models.UUIDField])
@pytest.mark.parametrize("kind", ["column", "check"])
def test_what_computes_with_the_key_is_refused(stage, key, kind):
    make(stage)
    if kind == "check":
        condition = ~models.Q(owner="owners/9-A")
        check = models.CheckConstraint(condition=condition, name="one")
        stage.migrate(migrations.AddConstraint("Item", check))
    else:
        column = models.GeneratedField(
            expression=Upper("owner"),
            output_field=models.CharField(max_length=64),
            db_persist=True,
        )
        stage.migrate(migrations.AddField("Item", "one", column))
    with pytest.raises(HiLoError, match="'one' of moved.Item computes with moved.Item"):
        stage.migrate(from_hilo(key))
    assert ids(stage)["a"] == "owners/1-A"


def test_several_moves_run_as_one(stage, monkeypatch):
    last = models.ForeignKey(
        f"{APP}.item", models.SET_NULL, null=True, related_name="+"
    )
    stage.migrate(
        owner(hilo()), item(key=hilo()), migrations.AddField("Owner", "last", last)
    )
    owners, items = stage.model("Owner").objects, stage.model("Item").objects
    for name in "abc":
        made = owners.create(name=name)
        owners.filter(name=name).update(last=items.create(owner=made).pk)
    entry = log_of("owners/1-A")
    moves = [from_hilo(), from_hilo(model="item")]
    monkeypatch.setattr(operations, "together", lambda operation: moves)

    def pairs():
        rows = stage.model("Item").objects.filter(owner__last=models.F("id"))
        return sorted(rows.values_list("owner__name", flat=True))

    for number in range(100):
        mend = failing_before(monkeypatch, number)
        try:
            stage.migrate(*moves)
        except Broken:
            mend()
            assert IS_MYSQL or pairs() == ["a", "b", "c"]
            continue
        mend()
        break
    assert 5 <= number < 100
    assert pairs() == ["a", "b", "c"]
    assert isinstance(stage.model("Item").objects.first().pk, int)
    entry.refresh_from_db()
    assert entry.object_id == "1"
    stage.undo()
    assert pairs() == ["a", "b", "c"]
    assert set(ids(stage).values()) == {f"owners/{n}-A" for n in (1, 2, 3)}


def test_an_empty_table_does_without_the_home_of_the_counters(stage, settings):
    """Which is made after it, where test databases are made from nothing."""
    settings.HILO = {**settings.HILO, "DATABASE": "other"}  # no access to it here
    stage.migrate(owner(hilo()), item(), from_hilo())
    assert stage.model("Owner").objects.create().pk == 1


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (models.CharField(primary_key=True, max_length=9), BIG, "is a CharField, not"),
        (hilo(), models.TextField, "is a TextField, not an integer or a UUID"),
        (hilo(per=["name"]), BIG, "has per=, whose series a move cannot convert"),
    ],
)
def test_other_keys_are_refused(stage, old, new, match):
    stage.migrate(owner(old))
    with pytest.raises(HiLoError, match=match):
        stage.migrate(from_hilo(new))


def altered(key, **attributes):
    """Return a migration with an AlterField in place of a move."""
    migration = migrations.Migration("0002", APP)
    vars(migration).update(
        operations=[migrations.AlterField("owner", "id", key)], **attributes
    )
    return migration


def delete_all(stage):
    stage.model("Item").objects.all().delete()
    stage.model("Owner").objects.all().delete()


@pytest.mark.parametrize("keeps", [False, True])
def test_a_plain_alter_field_is_refused_on_rows(stage, keeps):
    make(stage)
    plan = [(altered(BIG(primary_key=True), hilo_keeps_keys=keeps), False)]
    check = partial(check_plan, plan, apps=stage.states[-1].apps, using="default")
    with pytest.raises(CommandError, match="from HiLoField to Big.*MoveFromHiLo, whi"):
        check()
    delete_all(stage)
    check()


def test_plans_of_projects_without_such_keys_compute_no_state(stage, monkeypatch):
    stage.migrate(owner(models.AutoField(primary_key=True)))
    computed = []
    monkeypatch.setattr(altered_keys.ProjectState, "from_apps", computed.append)
    plan = [(altered(BIG(primary_key=True)), False)]
    check_plan(plan, apps=stage.states[-1].apps, using="default")
    assert not computed


def test_foreign_keys_that_a_plain_alter_field_has_dropped(stage):
    """On MariaDB and MySQL, in a project that does not have the app."""
    make(stage)
    with pytest.raises(DatabaseError):
        stage.migrate(migrations.AlterField("owner", "id", BIG(primary_key=True)))
    stage.migrate(from_hilo())
    assert related(stage) == FAMILY
    relations = connection.introspection.get_relations
    with connection.cursor() as cursor:
        assert "owner_id" in relations(cursor, "moved_item")
        assert "parent_id" in relations(cursor, "moved_owner")


def test_it_is_written_into_migrations():
    operation = MoveFromHiLo("owner", "id", BIG(primary_key=True), {"a.B": ("c", "d")})
    migration = type("Migration", (migrations.Migration,), {"operations": [operation]})
    text = MigrationWriter(migration("0002", APP), include_header=False).as_string()
    assert "django_hilo.moving.MoveFromHiLo(" in text
    names: dict = {}
    exec(text, names)
    (again,) = names["Migration"].operations
    assert again.generic == operation.generic
    assert again.describe() == "Move owner.id to BigAutoField"
    assert again.migration_name_fragment == "move_owner_from_hilo"
