import re
import sys
from functools import partial

import pytest
from django.db import NotSupportedError, connection, connections
from django.db.models import Count, F, Max, Transform, Value
from django.db.models.functions import Collate, Mod
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from django_hilo._database.dialects import database_of
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.fields import GaplessIdField, HiLoField, lookups
from django_hilo.fields.lookups import Anchor, Bucket, Collection, NodeTag, Number
from django_hilo.identifiers import MAX_NUMBER, anchor_in, parse
from django_hilo.sharding import bucket_of
from tests.apps.records.models import (
    Invoice,
    Numbered,
    Order,
    OrderLine,
    Plain,
    Restaurant,
)
from tests.support.sql import execute
from tests.test_identifiers import document_ids

pytestmark = [pytest.mark.servers, pytest.mark.django_db]

IDS = {
    "orders/9-A": 9,
    "orders/10-A": 10,
    "orders/100": 100,
    "orders/4s7/33-A": 33,
    "orders/7-A$orders/33-A": 7,
    "orders/8$": None,
    "orders:12-BC": 12,
    f"orders/{MAX_NUMBER}-A": MAX_NUMBER,
    f"orders/{MAX_NUMBER + 1}-A": None,
    f"orders/{10**19}-A": None,
    "orders/0-A": None,
    "orders/07-A": 7,
    "orders/14-a": None,
    "orders/15-ABCDE": None,
    "orders/16-A\n": None,
    "orders/17-A$x\ny": 17,
    "x\norders/18-A": None,
    "orders_19-A": None,
    "orders/ 20-A": None,
    "orders/x\u300021-A": None,
    "orders/x\u180e22-A": 22,
    "orders\\23-A": 23,
    "nonsense": None,
    "": None,
}


def _part(name: str, text: str) -> int | str | None:
    try:
        return getattr(parse(text), name)
    except InvalidDocumentId:
        return None


IN_PYTHON = {
    Number: partial(_part, "number"),
    Collection: partial(_part, "collection"),
    NodeTag: partial(_part, "node_tag"),
    Anchor: anchor_in,
    Bucket: bucket_of,
}


def _computed() -> list[type[Transform]]:
    """Return what the database at hand computes."""
    return [
        part
        for part in IN_PYTHON
        if part is not Bucket or connection.vendor == "sqlite"
    ]


def test_the_parts_of_texts():
    """Those of a column; the other tests compute them from values."""
    Numbered.objects.bulk_create(Numbered() for _ in IDS)
    rows = Numbered.objects.order_by("pk")
    for row, text in zip(rows, IDS, strict=True):
        # Past the field, which refuses what would be too far a jump.
        rows.filter(pk=row.pk).update(number=text)
    parts = [f"number__{part.lookup_name}" for part in _computed()]
    found = dict(zip(IDS, rows.values_list(*parts), strict=True))
    assert {text: number for text, (number, *_) in found.items()} == IDS
    assert found == {
        text: tuple(IN_PYTHON[part](text) for part in _computed()) for text in IDS
    }


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts = st.one_of(
    st.text(characters, max_size=60),
    st.from_regex(
        r"[a-z]{1,3}.{0,4}[0-9]{1,20}(-[A-Za-z]{0,5})?.{0,3}", fullmatch=True
    ),
    st.text("$a /1-A\uff04\n", max_size=8),
    document_ids.map(str).map(str.swapcase),
    document_ids.map(str),
).filter(lambda text: not re.search("[\x00\ud800-\udfff]", text))

# What ends a run of characters that server prefixes cannot hold, or stands beside it.
SPACE = re.compile(r"[\s\x00-\x1f\x7f]")
AROUND_SPACES = [
    point
    for point in range(1, 0x3002)
    if len({SPACE.match(chr(near)) is None for near in (point - 1, point, point + 1)})
    > 1
]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=100,
)
@given(texts=st.lists(texts, min_size=1, max_size=10))
@example(list(IDS))
@example([f"orders/x{chr(point)}1" for point in AROUND_SPACES])
@example(["o" * 100 + "/1", "o" * 101 + "/1"])
@example([f"o/{'x' * 31}-1", f"o/{'x' * 32}-1", f"o/{'-' * 32}1", f"o/{'-' * 33}1"])
@example(["a$ ", "a$", " $b", "$a$b", "a$$b", "a\uff04b", "a\uff04b$c", ""])
def test_the_database_reads_as_python_does(one_row, texts):
    asked = {
        f"{part.lookup_name}{place}": part(Value(text, HiLoField(max_length=999)))
        for place, text in enumerate(texts)
        for part in _computed()
    }

    found = Plain.objects.values(**asked).get()

    assert found == {
        f"{part.lookup_name}{place}": IN_PYTHON[part](text)
        for place, text in enumerate(texts)
        for part in _computed()
    }


@pytest.fixture
def one_row():
    Plain.objects.create()


@pytest.fixture
def orders():
    for text in ("orders/10-A", "orders/9-A", "orders/N2/100-A", "orders/33"):
        Order(id=text).save()
    Order.objects.bulk_create([Order(id="nonsense")])


def test_order_by_number(orders):
    up = Order.objects.exclude(id="nonsense").order_by("id__number")

    assert [order.pk for order in up] == [
        "orders/9-A",
        "orders/10-A",
        "orders/33",
        "orders/N2/100-A",
    ]
    assert list(up.reverse()) == list(reversed(up))
    assert Order.objects.order_by(F("id__number").desc(nulls_last=True))[0] == up[3]


def test_filter_and_values(orders):
    assert Order.objects.get(id__number=33).pk == "orders/33"
    assert Order.objects.filter(id__number__gte=33).count() == 2
    assert Order.objects.filter(pk__number__in=[9, 10]).count() == 2
    assert Order.objects.get(id__number=None).pk == "nonsense"
    assert Order.objects.get(id__number__isnull=True).pk == "nonsense"
    assert set(Order.objects.values_list("id__number", flat=True)) == {
        *(9, 10, 33, 100),
        None,
    }
    assert Order.objects.aggregate(most=Max("id__number")) == {"most": 100}
    assert Order.objects.annotate(n=F("id__number") + 1).get(n=34).pk == "orders/33"
    assert not Order.objects.filter(id__number=MAX_NUMBER + 1)
    with pytest.raises(ValueError, match="'number of an id' expected a number but got"):
        Order.objects.filter(id__number="orders/33")


def test_distinct_and_grouped(orders):
    numbers = Order.objects.values_list("id__number", flat=True).distinct()
    assert numbers.order_by("id__number").filter(id__number__lt=99).count() == 3

    odd = Order.objects.exclude(id="nonsense").values(odd=Mod("id__number", 2))
    assert set(odd.annotate(n=Count("pk")).values_list("odd", "n")) == {(0, 2), (1, 2)}
    by_number = Order.objects.values("id__number").annotate(lines=Count("lines"))
    assert by_number.get(id__number=9)["lines"] == 0


def test_through_relations(orders):
    for number, order in enumerate(Order.objects.order_by("id"), 1):
        OrderLine(id=f"OrderLines/{number}-A", order=order).save()

    assert Order.objects.get(lines__id__number=1) == Order.objects.order_by("id")[0]
    lines = OrderLine.objects.filter(order__id__number__gt=9).order_by(
        "-order__id__number"
    )
    assert [line.order_id for line in lines] == [
        "orders/N2/100-A",
        "orders/33",
        "orders/10-A",
    ]
    assert "JOIN" not in str(lines.query)


def test_a_parents_key():
    for number in (9, 10):
        Restaurant(id=f"places/{number}-A").save()

    assert [row.pk for row in Restaurant.objects.order_by("-id__number")] == [
        "places/10-A",
        "places/9-A",
    ]
    assert Restaurant.objects.get(place_ptr__id__number=9).pk == "places/9-A"


def test_the_mode_without_backslash_escapes_changes_nothing(orders):
    if connection.vendor != "mysql":
        pytest.skip("MariaDB and MySQL have it.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (mode,) = cursor.fetchone()
        for value in (mode + ",NO_BACKSLASH_ESCAPES", mode):
            cursor.execute("SET sql_mode = %s", [value])
            assert Order.objects.get(id__number=33).pk == "orders/33"
        if database_of(connection) == "mysql":
            return
        flags = "MULTILINE,EXTENDED,UNGREEDY"
        cursor.execute("SET default_regex_flags = %s", [flags])
        assert Order.objects.get(id__number=100).pk == "orders/N2/100-A"
        cursor.execute("SET default_regex_flags = DEFAULT")


def test_a_collation_without_patterns_changes_nothing(one_row):
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL has such collations.")
    try:
        execute(
            "CREATE COLLATION any_case "
            "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except NotSupportedError:
        pytest.skip("This PostgreSQL was built without ICU.")
    text = Collate(Value("Orders/7-A$x", HiLoField()), "any_case")

    found = Plain.objects.values_list(*(part(text) for part in _computed())).get()

    assert found == (7, "Orders", "A", "x")


def test_connections_that_are_open_already_get_the_function(orders):
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite needs one.")
    add = connection.connection.create_function
    add("django_hilo_number", 1, lambda text: 0, deterministic=True)
    assert not Order.objects.filter(id__number=33)

    lookups.register()

    assert Order.objects.filter(id__number=33)


def test_gapless_ids_have_the_lookups_too():
    assert set(IN_PYTHON) <= set(GaplessIdField().get_lookups().values())


def test_filters_by_other_parts(orders):
    Invoice.objects.create(order_id="orders/33")

    assert Order.objects.filter(id__collection="orders").count() == 4
    assert Order.objects.get(id__collection=None).pk == "nonsense"
    assert Order.objects.filter(id__node_tag="A").count() == 3
    assert Order.objects.get(id__node_tag="").pk == "orders/33"
    assert Order.objects.get(id__node_tag=None).pk == "nonsense"
    assert Order.objects.get(invoice__id__anchor=F("pk")).pk == "orders/33"
    assert Invoice.objects.get(id__anchor__startswith="orders/").pk.endswith(
        "$orders/33"
    )
    tags = Order.objects.values("id__node_tag").annotate(n=Count("pk"))
    assert set(tags.values_list("id__node_tag", "n")) == {("A", 3), ("", 1), (None, 1)}


def test_filter_by_bucket(orders):
    if connection.vendor != "sqlite":
        pytest.skip("Servers cannot compute it.")

    assert Order.objects.get(id__bucket=bucket_of("orders/33")).pk == "orders/33"
    assert [order.pk for order in Order.objects.order_by("id__bucket")] == sorted(
        Order.objects.values_list("pk", flat=True), key=bucket_of
    )


def test_servers_say_what_gives_buckets():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite computes it.")

    said = r"Add bucket = BucketField\(\) to records.Order"
    with pytest.raises(NotSupportedError, match=said):
        Order.objects.filter(id__bucket=1).exists()
    with pytest.raises(NotSupportedError, match=f"{said} and query order__bucket"):
        OrderLine.objects.filter(order__id__bucket=1).exists()
    with pytest.raises(NotSupportedError, match="to the model"):
        list(Plain.objects.values(bucket=Bucket(Value("x"))))
    with pytest.raises(NotSupportedError, match=r'BucketField\(source="number"\) to'):
        Numbered.objects.filter(number__bucket=1).exists()


def test_a_bucket_without_xxhash_says_what_to_install(monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite computes it.")
    monkeypatch.setitem(sys.modules, "xxhash", None)

    assert Order.objects.filter(id__number=1).count() == 0
    with pytest.raises(ImportError, match=r"django-hilo\[sharding\]"):
        Order.objects.filter(id__bucket=1).exists()


def test_a_column_of_other_types_has_no_parts_on_sqlite(one_row):
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite has such values.")

    found = Plain.objects.values(
        **{part.lookup_name: part(Value(b"orders/1-A")) for part in (Number, Bucket)}
    )

    assert found.get() == {"number": None, "bucket": None}


def test_other_databases_are_refused(monkeypatch):
    monkeypatch.setattr(connections["default"], "vendor", "other")

    with pytest.raises(NotSupportedError, match="__number works on SQLite, PostgreSQL"):
        str(Order.objects.filter(id__number=1).query)
