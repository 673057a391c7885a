"""What hilo_show prints: counters, and how full buckets are."""

import json
import re
import sys
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hilo._operations import bucket_report
from django_hilo.counters import (
    next_gapless_number,
    next_gapless_numbers,
    reserve,
)
from django_hilo.generator import next_id
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.sharding import bucket_of
from django_hilo.sources import hibernate
from tests.apps.buckets.models import Check, Deal, Part
from tests.apps.records.models import Invoice, Order
from tests.support.commands import PROJECT, told_by
from tests.support.databases import CHOSEN
from tests.support.sql import hide_table

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def show(*arguments: str, **options: object) -> str:
    return told_by("hilo_show", *arguments, no_color=True, **options)


def counters(**options: object) -> list[str]:
    """Return the lines of the first table; PostgreSQL has one of sequences too."""
    return show(**options).partition("\n\n")[0].splitlines()


def part_of(text: str, label: str) -> str:
    """Return what is said of one model."""
    return re.search(rf"^{label}:.*\n(?:  .*\n)*", text, re.MULTILINE)[0]


class TestCounters:
    def test_there_are_none(self):
        assert counters() == ["There are no counters yet."]

    def test_a_table(self):
        HiLoDocument.objects.create(
            collection="orders",
            node_tag="A",
            max=96,
            floor=7,
            low=33,
            size=64,
            reserved_at=datetime(2026, 11, 20, 19, 51, 3, 412_000, tzinfo=UTC),
        )
        HiLoDocument.objects.create(collection="numbers", max=5)
        next_id(Order, "other")
        HiLoDocument.objects.using("other").update(reserved_at=None)
        assert counters() == [
            "database  collection  node tag  Max  floor  newest range  reserved at",
            "default   numbers     -         5    0      -             -",
            "default   orders      A         96   7      33 to 96      "
            "2026-11-20 19:51:03+00:00",
            "other     orders      B         32   0      1 to 32       -",
        ]

    def test_of_one_database(self):
        next_id(Order)
        assert "orders" in show(database="default")
        assert counters(database="other") == ["There are no counters yet."]
        with pytest.raises(CommandError, match="invalid choice"):
            call_command("hilo_show", "--database=nowhere")

    def test_of_homes_alone(self, settings):
        next_id(Order, "other")
        settings.HILO = {"DATABASE": "default"}
        assert counters() == ["There are no counters yet."]

    def test_numbers_from_elsewhere(self, settings):
        assert ("numbers_item" in show()) is (CHOSEN == "postgres")
        source = hibernate.HiLo(9, "no_such_row")
        settings.HILO = {"SOURCES": {"tickets": source, "Numbers_Item": source}}
        lines = show().partition("\n\n")[2].splitlines()
        assert lines[0].split("  ")[0] == "database"
        found = {line.split()[1]: line for line in lines if "no_such_row" in line}
        assert set(found) == {"tickets", "numbers_item"}
        assert "no_such_row.next_hi" in found["tickets"]
        assert "unknown: no_such_row" in found["tickets"]

    def test_gapless_numbers(self):
        next_gapless_numbers("invoices", 7)
        next_gapless_number("letters", "other")
        table = show().split("\n\n")[-1].splitlines()
        assert table == [
            "database  collection  last gapless number",
            "default   invoices    7",
            "other     letters     1",
        ]
        assert "letters" not in show(database="default")
        assert "invoices" not in show(database="other")

    def test_series_are_named_with_their_model_and_few(self, monkeypatch):
        monkeypatch.setattr("django_hilo.management.commands.hilo_show.SERIES", 2)
        for place in "abc":
            next_gapless_number(f"charges.{place}.2026")
        next_gapless_number("gone.7")
        reserve("requests.7", 1, node_tag="")
        lines = [line for line in show().splitlines() if "(" in line]
        assert [re.sub("  +", " | ", line) for line in lines] == [
            "default | requests.7 (series.Request) | - | 1 | 0 | 1 to 1 | "
            + lines[0].split("  ")[-1].strip(),
            "default | charges.a.2026 (series.Charge) | 1",
            "default | charges.b.2026 (series.Charge) | 1",
            "default | ... (series.Charge, 1 more series) | 1",
            "default | gone.7 (no model) | 1",
        ]

    def test_without_a_table_of_gapless_numbers(self, monkeypatch):
        hide_table(GaplessCounter, monkeypatch)
        assert "gapless" not in show()

    def test_gapless_numbers_where_their_rows_are(self, settings):
        """Counters that have a home leave them there."""
        settings.HILO = {"DATABASE": "default"}
        next_gapless_number("letters", "other")
        assert "letters" in show()

    def test_without_a_table(self, monkeypatch):
        hide_table(HiLoDocument, monkeypatch)
        with pytest.raises(CommandError, match="(?s)no_such_table.*migrations"):
            show()


class TestJSON:
    def test_counters(self, settings):
        at = datetime(2026, 11, 20, 19, 51, 3, 412_000, tzinfo=UTC)
        HiLoDocument.objects.create(
            collection="orders",
            node_tag="A",
            max=MAX_NUMBER,
            floor=7,
            low=33,
            size=64,
            reserved_at=at,
        )
        HiLoDocument.objects.using("other").create(collection="numbers", max=5)
        next_gapless_number("invoices")
        source = hibernate.HiLo(9, "no_such_row")
        settings.HILO = {"SOURCES": {"tickets": source}}
        said = json.loads(show(format="json"))
        assert said["counters"] == [
            {
                "database": "default",
                "collection": "orders",
                "node_tag": "A",
                "max": 9223372036854775807,
                "floor": 7,
                "low": 33,
                "high": 96,
                "reserved_at": "2026-11-20T19:51:03.412000+00:00",
                "models": ["records.Order"],
            },
            {
                "database": "other",
                "collection": "numbers",
                "node_tag": "",
                "max": 5,
                "floor": 0,
                "low": None,
                "high": None,
                "reserved_at": None,
                "models": ["records.Numbered"],
            },
        ]
        assert said["gapless"] == [
            {
                "database": "default",
                "collection": "invoices",
                "last": 1,
                "models": [],
            }
        ]
        (tickets,) = [row for row in said["sources"] if row["collection"] == "tickets"]
        assert (tickets["database"], tickets["max"]) == ("default", None)
        assert tickets["error"].startswith("no_such_row")
        assert tickets["source"].startswith("no_such_row.next_hi")
        of_item = [row for row in said["sources"] if "numbers_item" in row["source"]]
        assert len(of_item) == (2 if CHOSEN == "postgres" else 0)
        assert all(isinstance(row["max"], int) for row in of_item)
        assert datetime.fromisoformat(said["counters"][0]["reserved_at"]) == at

    @pytest.mark.parametrize("arguments", [[], ["--buckets"]])
    def test_each_key_is_explained(self, arguments):
        """The page of the documentation names the keys, and no others."""
        next_id(Order)
        next_gapless_number("invoices")
        parts("deals/33-A", 1)
        page = (PROJECT / "docs/reference/commands.md").read_text()
        explained = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
        assert keys_in(json.loads(show(*arguments, format="json"))) <= explained


def keys_in(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys_in, value))
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys_in, value.values()))
    return set()


def parts(deal_id: str, count: int, using: str = "default") -> None:
    deal = Deal.objects.using(using).get_or_create(id=deal_id)[0]
    Part.objects.using(using).bulk_create([Part(deal=deal) for _ in range(count)])


class TestBuckets:
    def test_the_database_counts_where_a_column_has_them(self):
        parts("deals/33-A", 7)
        parts("deals/34-A", 2)
        parts("deals/35-A", 1, "other")
        with CaptureQueriesContext(connection) as queries:
            said = part_of(show("--buckets"), "buckets.Part")
        assert said.splitlines() == [
            "buckets.Part: 10 rows",
            "  default: 9 rows (90.0%) in 2 buckets",
            f"    bucket {bucket_of('deals/33-A')}: 7 rows (deals/33-A)",
            f"    bucket {bucket_of('deals/34-A')}: 2 rows (deals/34-A)",
            "  other: 1 rows (10.0%) in 1 buckets",
            f"    bucket {bucket_of('deals/35-A')}: 1 rows (deals/35-A)",
        ]
        asked = [q["sql"] for q in queries if "buckets_part" in q["sql"]]
        assert len(asked) == 3
        assert not any("WHERE" in sql and "deals/" in sql for sql in asked)

    def test_else_all_ids_are_read(self):
        for number in (1, 2):
            order = Order.objects.create(id=f"orders/{number}-A")
            made = [Invoice(order=order) for _ in range(number * 3)]
            Invoice.objects.bulk_create(made)
        assert part_of(show("--buckets"), "records.Invoice").splitlines() == [
            "records.Invoice: 9 rows",
            "  default: 9 rows (100.0%) in 2 buckets",
            "    bucket 831716: 6 rows (orders/2-A)",
            "    bucket 151326: 3 rows (orders/1-A)",
            "  other: 0 rows (0.0%) in 0 buckets",
        ]

    def test_both_count_the_same(self, monkeypatch):
        for number in range(1, 9):
            parts(f"deals/{number}-A", number)
        Part.objects.bulk_create(
            [
                Part(id="a$deals/8-A", deal_id="deals/1-A"),
                Part(id="b$x", deal_id="deals/1-A"),
            ]
        )
        counted = bucket_report.measure(Part._meta.pk, "default", 3)
        monkeypatch.setattr(bucket_report, "_column_of", lambda field: None)
        assert bucket_report.measure(Part._meta.pk, "default", 3) == counted
        largest = [
            bucket_report._bucket(bucket_of(f"deals/{n}-A"), rows, f"deals/{n}-A")
            for n, rows in ((8, 9), (7, 7), (6, 6))
        ]
        assert counted == {"rows": 38, "buckets": 9, "largest": largest}

    def test_no_more_ids_are_read_than_say_what_is_in_a_bucket(self):
        ids = iter(["a$x", "b$x", "c$y", "d$y"])
        assert bucket_report._texts(ids, [bucket_of("x")]) == {bucket_of("x"): "x"}
        assert next(ids) == "c$y"

    def test_rows_without_a_bucket_yet(self):
        parts("deals/33-A", 1)
        Check.objects.bulk_create([Check(part=Part.objects.get()) for _ in range(3)])
        first = Check.objects.first()
        Check.objects.exclude(pk=first.pk).update(bucket=None)
        largest = [bucket_report._bucket(bucket_of("deals/33-A"), 1, "deals/33-A")]
        counted = bucket_report.measure(Check._meta.pk, "default", 9)
        assert counted == {"rows": 3, "buckets": 1, "largest": largest}

    def test_oversized_buckets(self):
        parts("deals/33-A", 7)
        parts("deals/34-A", 6)
        assert "oversized" not in show("--buckets")
        assert "oversized" not in show("--buckets", oversized=7)
        said = show("--buckets", oversized=6)
        assert said.count("oversized") == 1
        assert "(deals/33-A)\n    is oversized, over 6 rows: a bucket cannot be" in said

    @pytest.mark.parametrize("rows", ["0", "-1", "x"])
    def test_less_than_one_row_is_no_bound(self, rows):
        with pytest.raises(
            CommandError, match=f"'{rows}' is not an integer of at least 1"
        ):
            show("--buckets", f"--oversized={rows}")
        assert show("--buckets", "--oversized=1")

    def test_of_one_database(self):
        parts("deals/33-A", 1, "other")
        said = part_of(show("--buckets", database="other"), "buckets.Part")
        assert "default" not in said
        assert "other: 1 rows (100.0%)" in said

    def test_models_that_have_nothing_to_do_with_buckets(self):
        said = show("--buckets")
        labels = re.findall(r"^(\S+):", said, re.MULTILINE)
        assert {"records.Invoice", "buckets.Part", "buckets.Check"} <= set(labels)
        assert not {"records.Order", "buckets.Deal", "records.Numbered"} & set(labels)

    def test_no_model_has(self, monkeypatch):
        monkeypatch.setattr(bucket_report, "counter_fields", list)
        assert show("--buckets").startswith("No model has ids with anchors")

    def test_without_xxhash(self, monkeypatch):
        Invoice.objects.create(order=Order.objects.create())
        monkeypatch.setitem(sys.modules, "xxhash", None)
        with pytest.raises(CommandError, match=r"django-hilo\[sharding\]"):
            show("--buckets")
