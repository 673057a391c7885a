"""MoveFromHiLo on the database: from ids that were there from the beginning."""

from functools import partial

import pytest
from django.core.management import CommandError
from django.db import DatabaseError, connection, migrations, models
from django.db.migrations.writer import MigrationWriter

from django_hilo._allocation import memory
from django_hilo._operations.process import check_plan
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from django_hilo.moving import MoveFromHiLo, MoveToHiLo, operations
from tests.support.databases import IS_MYSQL
from tests.support.moving_stage import APP, Broken, Stage, failing_before, item, owner

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
    with pytest.raises(HiLoError, match="has none|have the same one"):
        stage.migrate(from_hilo())
    assert ids(stage)["a"] == "owners/7-A"
    stage.migrate(from_hilo(models.UUIDField))
    assert related(stage) == FAMILY
    stage.migrate(MoveToHiLo("owner", "id", hilo(), order_by=["-name"]))
    stage.migrate(from_hilo())
    assert related(stage) == FAMILY
    new = ids(stage)
    assert 7 < new["c"] < new["b"] < new["a"]


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


def test_a_plain_alter_field_is_refused_on_rows(stage):
    make(stage)
    altered = migrations.AlterField("owner", "id", BIG(primary_key=True))
    migration = type("Migration", (migrations.Migration,), {"operations": [altered]})
    plan = [(migration("0002", APP), False)]
    check = partial(check_plan, plan, apps=stage.states[-1].apps, using="default")
    with pytest.raises(CommandError, match="from HiLoField to Big.*MoveFromHiLo, whi"):
        check()
    stage.model("Item").objects.all().delete()
    stage.model("Owner").objects.all().delete()
    check()


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
