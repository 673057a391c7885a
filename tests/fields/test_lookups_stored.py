"""Indexes and columns that lookups are read from, made by migrations."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import NotSupportedError, connection, migrations, models
from django.db.migrations.state import ProjectState
from django.db.models import Exists, F, Index, Max, OuterRef
from django.test.utils import CaptureQueriesContext

from django_hilo._operations.highest_numbers import _highest, highest_number
from django_hilo.fields import BucketField, HiLoField
from django_hilo.fields.lookups import Number
from django_hilo.sharding import bucket_of

pytestmark = [pytest.mark.servers, pytest.mark.django_db]

TEXT = models.CharField(max_length=128)
COLUMNS = {
    "number": models.BigIntegerField(),
    "collection": TEXT,
    "node_tag": models.CharField(max_length=4),
    "anchor": TEXT,
}
IDS = {
    "invoices/10-A$orders/2": (10, "invoices", "A", "orders/2"),
    "invoices/9-BC$orders/2": (9, "invoices", "BC", "orders/2"),
    "orders:0011": (11, "orders", "", None),
    "nonsense": (None, None, None, None),
    "some$ text": (None, None, None, " text"),
}


def _keyed(name: str, *fields: tuple[str, models.Field]) -> migrations.CreateModel:
    key = ("id", HiLoField(primary_key=True, max_length=128))
    return migrations.CreateModel(name, [key, *fields])


def _generated(
    name: str, persisted: bool = True, of: Any = None, index: bool = False
) -> models.GeneratedField:
    return models.GeneratedField(
        expression=of or F(f"id__{name}"),
        output_field=COLUMNS[name],
        db_persist=persisted,
        db_index=index,
    )


def _operations() -> Iterator[migrations.operations.base.Operation]:
    yield _keyed("Bare", ("bucket", BucketField(db_index=True)))
    if connection.features.supports_expression_indexes:
        yield _keyed("Indexed")
        for name in COLUMNS:
            index = Index(F(f"id__{name}"), name=f"expression_{name}")
            yield migrations.AddIndex("Indexed", index)
    if connection.vendor != "postgresql":
        virtual = {each: _generated(each, False, index=True) for each in COLUMNS}
        yield _keyed("Virtual", *virtual.items())
    yield _keyed("Stored")
    for name in COLUMNS:
        yield migrations.AddField("Stored", name, _generated(name, index=True))
    yield _keyed(
        "Line",
        ("to", models.ForeignKey("shop.Stored", models.CASCADE)),
        ("bucket", BucketField("to")),
        ("number", _generated("number", of=Number("id"))),
        ("to_tag", _generated("node_tag", of=F("to__id__node_tag"), index=True)),
    )
    if connection.features.supports_expression_indexes:
        index = Index(F("to__id__number"), name="lines_by_to_number")
        yield migrations.AddIndex("Line", index)
    other = _generated("number", of=F("id__number") + 1)
    yield _keyed("Other", ("number", other))


def _migrate(state: ProjectState, *operations: Any) -> ProjectState:
    migration = migrations.Migration("recipes", "shop")
    migration.operations = list(operations)
    with connection.schema_editor() as editor:
        return migration.apply(state, editor)


@pytest.fixture(scope="module")
def shop(django_db_setup, django_db_blocker):
    operations = list(_operations())
    with django_db_blocker.unblock():
        state = _migrate(ProjectState(), *operations)
    yield state.apps
    made = [each.name for each in operations if hasattr(each, "managers")]
    with django_db_blocker.unblock():
        _migrate(state, *map(migrations.DeleteModel, reversed(made)))


def _filled(shop: Any, name: str) -> type[models.Model]:
    model = shop.get_model("shop", name)
    model.objects.bulk_create(model(id=text) for text in IDS)
    return model


def _explain(queryset: models.QuerySet) -> str:
    """Return the plan, where the planner must take an index if it can."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for way in ("seqscan", "bitmapscan", "sort"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
    return queryset.explain()


@pytest.mark.parametrize("name", COLUMNS)
def test_an_index_of_a_part_is_used(shop, name):
    if not connection.features.supports_expression_indexes:
        pytest.skip("MariaDB has no indexes of expressions.")
    indexed = _filled(shop, "Indexed")
    one = {f"id__{name}": 10 if name == "number" else "A"}

    assert f"expression_{name}" in _explain(indexed.objects.filter(**one))
    assert f"expression_{name}" in _explain(indexed.objects.order_by(f"id__{name}"))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("model", ["Stored", "Virtual"])
def test_a_generated_column_of_a_part_is_read(shop, model, name):
    if (connection.vendor, model) == ("postgresql", "Virtual"):
        pytest.skip("PostgreSQL 15 has stored ones only.")
    stored = _filled(shop, model)
    index = f"{model}_{name}".lower()
    one = stored.objects.filter(**{f"id__{name}": 10 if name == "number" else "A"})
    ordered = stored.objects.order_by(f"id__{name}")

    assert index in _explain(one)
    # MariaDB reads so few rows faster than any index.
    assert index in _explain(ordered.values("pk")[:1])
    read = dict(stored.objects.values_list("pk", f"id__{name}"))
    assert read == dict(stored.objects.values_list("pk", name))
    assert read == {id: IDS[id][list(COLUMNS).index(name)] for id in IDS}


@pytest.mark.parametrize("name", ["Indexed", "Virtual", "Stored"])
def test_the_highest_number_is_read_by_its_index(shop, name):
    if name == "Indexed" and not connection.features.supports_expression_indexes:
        pytest.skip("MariaDB has no indexes of expressions.")
    if (connection.vendor, name) == ("postgresql", "Virtual"):
        pytest.skip("PostgreSQL 15 has stored ones only.")
    model = shop.get_model("shop", name)
    field, more = model._meta.pk, range(1, 200)
    field.collection_name  # noqa: B018 - found before the queries
    ids = [*(f"{name}s/{n}-A" for n in more), *(f"others/{n}-A" for n in range(300))]
    model.objects.bulk_create(model(id=text) for text in [*ids, f"{name}s/250-B"])
    with CaptureQueriesContext(connection) as queries:
        assert highest_number(field, "default", "A")[0] == 199
    (query,) = queries
    assert _highest(field, "default", {"", "A"}, up_to=150)[2] == 150
    _explain(model.objects.none())
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {query['sql']}")
        plan = str(cursor.fetchall())
    index = "expression_number" if name == "Indexed" else f"{name}_number".lower()
    assert index in plan


def test_a_bucket_field_is_read(shop):
    bare = _filled(shop, "Bare")
    queryset = bare.objects.filter(id__bucket=bucket_of("orders/2"))

    assert {row.pk for row in queryset} == {id for id in IDS if id.endswith("orders/2")}
    assert "bucket" in _explain(queryset)
    same = bare.objects.filter(id__bucket=OuterRef("id__bucket")).exclude(
        pk=OuterRef("pk")
    )
    assert set(bare.objects.filter(Exists(same))) == set(queryset)
    bare.objects.update(bucket=7)
    assert set(bare.objects.values_list("pk__bucket", flat=True)) == {7}


def test_a_bucket_field_of_a_relation_is_read_for_the_relation(shop):
    _filled(shop, "Stored")
    line = shop.get_model("shop", "Line")
    line.objects.create(id="lines/1", to_id="orders:0011")

    assert line.objects.get(to__id__bucket=bucket_of("orders:0011")).pk == "lines/1"
    if connection.vendor == "sqlite":
        assert line.objects.get(id__bucket=bucket_of("lines/1")).pk == "lines/1"
    else:
        with pytest.raises(NotSupportedError, match=r"BucketField\(\) to shop.Line"):
            line.objects.filter(id__bucket=1).exists()


def test_a_relation_has_the_parts_of_its_own_id(shop):
    stored = _filled(shop, "Stored")
    line = shop.get_model("shop", "Line")
    line.objects.create(id="lines/1", to_id="orders:0011")

    numbers = line.objects.values_list("id__number", "to__id__number")
    assert list(numbers) == [(1, 11)]
    assert '"number"' in str(line.objects.values("id__number").query).replace("`", '"')
    # Joined for another column, the other table's column is read.
    both = line.objects.filter(to__anchor=None, to__id__number=11)
    assert both.get().pk == "lines/1"
    assert stored.objects.get(line__id__number=1).pk == "orders:0011"


def test_other_generated_columns_are_left_alone(shop):
    other = shop.get_model("shop", "Other")
    other.objects.create(id="others/1")

    assert other.objects.values_list("id__number", "number").get() == (1, 2)


def test_subqueries_and_aggregates_of_stored_parts(shop):
    stored = _filled(shop, "Stored")
    same = stored.objects.filter(id__number=OuterRef("id__number"))

    assert stored.objects.filter(Exists(same)).count() == 3
    found = stored.objects.filter(Exists(same.filter(id__anchor="orders/2")))
    assert found.count() == 2
    assert stored.objects.filter(
        pk__in=stored.objects.filter(id__node_tag="BC")
    ).get() == stored.objects.get(id__number=9)
    numbers = stored.objects.exclude(id__number=None).order_by("id__number")
    assert numbers[:2].aggregate(most=Max("id__number")) == {"most": 10}
    assert numbers.distinct().aggregate(most=Max("id__number")) == {"most": 11}
    assert numbers.order_by().union(numbers.order_by()).count() == 3
    stored.objects.filter(id__number=9).delete()
    assert numbers.count() == 2


def test_an_index_beside_a_generated_column_is_of_the_expression(shop):
    if not connection.features.supports_expression_indexes:
        pytest.skip("MariaDB has no indexes of expressions.")
    stored = shop.get_model("shop", "Stored")
    index = Index(F("id__anchor"), name="beside")

    assert "CASE WHEN" in str(index.create_sql(stored, connection.schema_editor()))


def test_the_parts_of_a_relation_have_indexes_too(shop):
    line = shop.get_model("shop", "Line")

    assert not line.check(databases=["default"])
    assert "line_to_tag" in _explain(line.objects.filter(to__id__node_tag="A"))
    if connection.features.supports_expression_indexes:
        by_number = line.objects.filter(to__id__number=11)
        assert "lines_by_to_number" in _explain(by_number)
