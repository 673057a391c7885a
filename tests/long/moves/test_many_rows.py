"""A move of many rows in three levels, with self-references and unique pairs.

HILO_TEST_MOVING_ROWS is how many rows each of the three tables has.
"""

import os
import time

import pytest
from django.db import IntegrityError, connection, migrations, models, transaction

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.generator import raise_floor
from django_hilo.models import HiLoDocument
from django_hilo.moving import MoveFromHiLo
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.moving_stage import Stage, move_owner

ROWS = int(os.environ.get("HILO_TEST_MOVING_ROWS", "20000"))
# The bound of a recursion, which such a series needs more of.
LIMIT = {"mariadb": "max_recursive_iterations", "mysql": "cte_max_recursion_depth"}
SERIES = (
    f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
    f"WHERE n < {ROWS}) "
)
# The row before, by fives; the first four have none.
ABOVE = "NULLIF(was - MOD(was, 5), 0)"
if CHOSEN == "sqlite":
    ABOVE = "NULLIF(was - was % 5, 0)"
# Each reference beside the number that it was.
OWNER = [
    ("was", models.BigIntegerField()),
    ("parent", models.ForeignKey("self", models.CASCADE, null=True)),
    ("was_parent", models.BigIntegerField(null=True)),
]
OTHERS = [
    migrations.CreateModel(
        "Item",
        [
            ("owner", models.OneToOneField("owner", models.CASCADE, primary_key=True)),
            ("was", models.BigIntegerField()),
        ],
    ),
    migrations.CreateModel(
        "Part",
        [
            ("id", models.BigAutoField(primary_key=True)),
            ("item", models.ForeignKey("item", models.CASCADE)),
            ("was_item", models.BigIntegerField()),
            ("owner", models.ForeignKey("owner", models.CASCADE)),
            ("was_owner", models.BigIntegerField()),
        ],
        options={"unique_together": {("item", "owner")}},
    ),
]


def tables(key: models.Field) -> list[migrations.CreateModel]:
    fields = [("id", key), *OWNER]
    unique = {("id", "was"), ("parent", "was")}
    owner = migrations.CreateModel("Owner", fields, options={"unique_together": unique})
    return [owner, *OTHERS]


REFERENCES = [
    ("owner", "id", "was"),
    ("owner", "parent_id", "was_parent"),
    ("item", "owner_id", "was"),
    ("part", "item_id", "was_item"),
    ("part", "owner_id", "was_owner"),
]


@pytest.fixture
def stage(transactional_db):
    stage = Stage()
    yield stage
    stage.drop()


def fill(key: str) -> None:
    """Fill the tables; ``key`` is the SQL of the key of number ``{was}``."""
    # SQLite and PostgreSQL take the series before the INSERT, MariaDB in it.
    before, inside = ("", SERIES) if IS_MYSQL else (SERIES, "")
    other = f"1 + n * 7 % {ROWS}"
    this, that = key.format(was="n"), key.format(was=f"({other})")
    with connection.cursor() as cursor:
        if IS_MYSQL:
            cursor.execute(f"SET {LIMIT[CHOSEN]} = {ROWS + 1}")
        for table, columns, values in (
            ("owner", "id, was", f"{this}, n"),
            ("item", "owner_id, was", f"{this}, n"),
            (
                "part",
                "item_id, was_item, owner_id, was_owner",
                f"{this}, n, {that}, {other}",
            ),
        ):
            cursor.execute(
                f"{before}INSERT INTO moved_{table} ({columns}) "
                f"{inside}SELECT {values} FROM numbers"
            )
        cursor.execute(f"UPDATE moved_owner SET was_parent = {ABOVE}")
        parent = key.format(was="was_parent")
        cursor.execute(
            f"UPDATE moved_owner SET parent_id = {parent} WHERE was_parent IS NOT NULL"
        )


def differing(expected: str) -> dict[str, int]:
    """Count the references that are not what they were."""
    found = {}
    with connection.cursor() as cursor:
        for table, column, was in REFERENCES:
            value = expected.format(was=was)
            cursor.execute(
                f"SELECT COUNT(*) FROM moved_{table} WHERE {column} <> {value} OR "
                f"({column} IS NULL) <> ({was} IS NULL)"
            )
            found[f"{table}.{column}"] = cursor.fetchone()[0]
    return found


AS_IDS = (
    "CONCAT('owners/', {was}, '-A')"
    if CHOSEN != "sqlite"
    else "'owners/' || {was} || '-A'"
)


def test_every_reference_is_what_it_was(stage):
    stage.migrate(*tables(models.BigAutoField(primary_key=True)))
    fill("{was}")
    assert not any(differing("{was}").values())
    started = time.perf_counter()
    stage.migrate(move_owner())
    there = time.perf_counter() - started
    assert not any(differing(AS_IDS).values())
    assert all(count for count in differing("'x'").values())
    assert HiLoDocument.objects.get(pk="owners/A").max >= ROWS
    use(stage)

    started = time.perf_counter()
    stage.undo()
    back = time.perf_counter() - started
    assert not any(differing("{was}").values())
    made = stage.model("Owner").objects.create(was=ROWS + 2)
    assert made.pk > ROWS + 1
    print(f"{CHOSEN}: {ROWS} rows, {there:.1f} s there, {back:.1f} s back")


def test_from_ids_that_were_there_from_the_beginning(stage):
    stage.migrate(*tables(HiLoField(primary_key=True)))
    fill(AS_IDS)
    raise_floor(stage.model("Owner"), ROWS)
    assert not any(differing(AS_IDS).values())
    started = time.perf_counter()
    stage.migrate(MoveFromHiLo("owner", "id", models.BigAutoField(primary_key=True)))
    back = time.perf_counter() - started
    assert not any(differing("{was}").values())
    made = stage.model("Owner").objects.create(was=ROWS + 1)
    assert made.pk > ROWS
    made.delete()

    started = time.perf_counter()
    stage.undo()
    undone = time.perf_counter() - started
    assert not any(differing(AS_IDS).values())
    print(f"{CHOSEN}: {ROWS} rows, {back:.1f} s to numbers, {undone:.1f} s undone")


def test_integer_keys_are_not_converted(stage):
    stage.migrate(*tables(HiLoBigAutoField(primary_key=True)))
    fill("{was}")
    raise_floor(stage.model("Owner"), ROWS)
    started = time.perf_counter()
    plain = models.BigAutoField(primary_key=True)
    stage.migrate(migrations.AlterField("owner", "id", plain))
    print(f"{CHOSEN}: {ROWS} rows, {time.perf_counter() - started:.1f} s, integers")
    assert not any(differing("{was}").values())
    assert stage.model("Owner").objects.create(was=ROWS + 1).pk > ROWS


def use(stage):
    """What a program does: save, join, order, be refused."""
    owner_model, part_model = stage.model("Owner"), stage.model("Part")
    made = owner_model.objects.create(was=ROWS + 1)
    assert made.pk == f"owners/{ROWS + 1}-A"
    last = part_model.objects.select_related("item__owner__parent").get(
        was_item=ROWS // 2
    )
    assert last.item.owner.was == ROWS // 2
    assert last.item.owner.parent.was == ROWS // 2 - ROWS // 2 % 5
    first = owner_model.objects.order_by("-id__number").first()
    assert first == made
    with pytest.raises(IntegrityError), transaction.atomic():
        owner_model.objects.create(was=10, parent_id="owners/10-A")
    with pytest.raises(IntegrityError), transaction.atomic():
        part_model.objects.filter(was_item=1).update(item_id="owners/0-A")
    owner_model.objects.filter(pk=made.pk).update(was=ROWS + 1)
