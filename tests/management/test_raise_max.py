import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from typing import NamedTuple

import pytest
from django.core.management import CommandError, call_command
from django.db import models

from django_hilo._allocation.find import resolve
from django_hilo.counters import read_max, reserve, return_range
from django_hilo.counters.gapless import last_gapless_number
from django_hilo.counters.own import OwnSource
from django_hilo.exceptions import SourceMismatch
from django_hilo.generator import next_number
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item
from tests.apps.records.models import Bistro, Claim, Letter, Order
from tests.conftest import PREAMBLE, child_environment
from tests.support import warm
from tests.support.commands import told_by
from tests.support.patience import PATIENCE
from tests.support.sql import execute, hide_table
from tests.support.writers import writers

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(databases=["default", "other"]),
]


def run(*arguments: str, **options: object) -> str:
    return told_by("hilo_raise_max", *arguments, **options)


def insert_by_sql(*keys: str, using: str = "default") -> None:
    for key in keys:
        sql = "INSERT INTO records_order (id, name) VALUES (%s, '')"
        execute(sql, key, using=using)


def test_it_raises_to_the_highest_id_of_the_own_counter():
    insert_by_sql("orders/7-A", "orders/90-A$x", "orders/500-B", "users/900-A", "x")
    assert "was raised: 0 to 90" in run()
    assert read_max("orders") == 90
    assert next_number(Order) == 91


def test_a_dry_run_changes_nothing():
    insert_by_sql("orders/7-A")
    assert "would be raised from 0 to 7" in run("orders", dry_run=True)
    assert not HiLoDocument.objects.exists()


def test_it_never_lowers():
    reserve("orders", 100)
    insert_by_sql("orders/7-A")
    assert "is 100, the highest number in use is 7" in run("ORDERS")
    assert read_max("orders") == 100


def test_a_range_in_other_hands_cannot_go_back_under_it():
    reservation = reserve("orders", 32)
    insert_by_sql("orders/60-A")
    run()
    with pytest.raises(Exception, match="no longer the newest"):
        return_range("orders", 32, 5, reservation.ticket)


def test_each_field_and_database_has_its_own():
    Bistro.objects.create(code="bistro-codes/44-A")
    HiLoDocument.objects.all().delete()
    insert_by_sql("orders/7-B", using="other")
    out = run("bistro-codes") + run(database="other")
    assert "Bistro.code: Max of 'bistro-codes' on 'default' was raised: 0 to 44" in out
    assert "Order.id: Max of 'orders' on 'other' was raised: 0 to 7" in out
    assert read_max("orders", "other") == 7


def test_models_go_by_the_names_that_it_prints():
    Bistro.objects.create(code="bistro-codes/44-A")
    HiLoDocument.objects.all().delete()
    insert_by_sql("orders/7-A")
    for name in ("records.Order", "RECORDS.order", "records.Order.id"):
        out = run(name, dry_run=True)
        assert out.startswith("records.Order.id: Max of 'orders' on 'default' would")
        assert "bistro" not in out
    with pytest.raises(CommandError, match=r"ids of .records.nothing.\."):
        run("records.Nothing")


def test_it_says_what_changed_and_counts_the_rest():
    insert_by_sql("orders/7-A")
    changed, rest = run().splitlines()
    assert changed.endswith("Max of 'orders' on 'default' was raised: 0 to 7.")
    count = int(re.fullmatch(r"(\d+) counters need no change\.", rest)[1])
    full = run(verbosity=2).splitlines()
    assert len(full) == count + 1
    assert all("the highest number in use is" in line for line in full)


def test_a_check_writes_nothing_and_fails_if_a_counter_is_too_low():
    assert "need no change" in run("--check")
    insert_by_sql("orders/7-A")
    out = StringIO()
    with pytest.raises(CommandError, match="Counters that are too low: 1") as raised:
        call_command("hilo_raise_max", "--check", stdout=out)
    assert raised.value.returncode == 1
    assert "would be raised from 0 to 7" in out.getvalue()
    assert not HiLoDocument.objects.exists()


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--check"]])
def test_an_id_that_is_absurdly_high_raises_no_counter(options):
    typed = "orders/9223372036854775000-A"
    insert_by_sql("orders/7-A", typed)
    execute("INSERT INTO records_letter (id) VALUES ('letters/9223372036854775000')")
    Bistro.objects.create(code="bistro-codes/44-A")
    HiLoDocument.objects.all().delete()
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match="2 of the counters"):
        call_command("hilo_raise_max", *options, stdout=out, stderr=err)
    assert f"records.Order.id: The id {typed!r} is" in err.getvalue()
    assert "records.Letter.id: The id 'letters/9223372036854775000'" in err.getvalue()
    assert err.getvalue().count("use --force") == 2
    assert err.getvalue().count("the counter stays as it is") == 2
    assert "raised" in out.getvalue()  # the other one
    assert (read_max("orders"), last_gapless_number("letters")) == (0, 0)
    if not options:
        run("orders", "--force")
        assert read_max("orders") == 9223372036854775000


def test_an_integer_key_that_is_absurdly_high(settings):
    # MariaDB never lowers AUTO_INCREMENT again.
    settings.HILO = {**settings.HILO, "MAX_FLOOR_JUMP": 10}
    high = next_number(Item) + 1000
    execute("INSERT INTO numbers_item (id, name) VALUES (%s, '')", high)
    err = StringIO()
    with pytest.raises(CommandError, match="1 of the counters"):
        call_command("hilo_raise_max", "numbers_item", stderr=err)
    assert f"numbers.Item.id: The id '{high}' is" in err.getvalue()


def test_unknown_collections_and_quiet_runs():
    with pytest.raises(CommandError, match=r"has ids of .nothing..*orders"):
        run("nothing")
    assert run(verbosity=0) == ""


def test_a_database_without_ids_is_no_success(settings):
    class NothingOnDefault:
        def allow_migrate(self, db, app_label, **hints):
            return db != "default"

    settings.DATABASE_ROUTERS = [NothingOnDefault()]
    with pytest.raises(CommandError, match="each database that has: other"):
        run()
    insert_by_sql("orders/7-B", using="other")
    assert "was raised: 0 to 7" in run(database="other")


@pytest.mark.parametrize("error", [None, SourceMismatch("told")])
def test_a_table_that_cannot_be_read_stops_no_other(monkeypatch, error):
    insert_by_sql("orders/7-A")
    execute("INSERT INTO records_letter (id) VALUES ('letters/40')")
    Bistro.objects.create(code="bistro-codes/44-A")
    HiLoDocument.objects.all().delete()
    if error is None:
        hide_table(Order, monkeypatch)
    else:
        read_max_of = OwnSource.read_max

        def read(counter, using):
            if counter.collection == "orders":
                raise error
            return read_max_of(counter, using)

        monkeypatch.setattr(OwnSource, "read_max", read)
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match="1 of the counters") as raised:
        call_command("hilo_raise_max", stdout=out, stderr=err)
    assert raised.value.returncode == 1
    assert err.getvalue().startswith("records.Order.id: ")
    assert ("told" if error else "no_such_table") in err.getvalue()
    assert "'bistro-codes' on 'default' was raised: 0 to 44" in out.getvalue()
    assert "'letters' on 'default' was raised: 0 to 40" in out.getvalue()


def test_gapless_counters_too(transactional_db):
    Letter.objects.create()
    for key in ("letters/40", "letters/90-A", "other/70"):
        execute("INSERT INTO records_letter (id) VALUES (%s)", key)
    execute("INSERT INTO records_claim (id) VALUES ('claims/7')")
    assert "would be raised from 1 to 40" in run("letters", dry_run=True)
    out = run()
    assert (
        "the last gapless number of 'letters' on 'default' was raised: 1 to 40" in out
    )
    assert "the last gapless number of 'claims' on 'default' was raised: 0 to 7" in out
    assert Letter.objects.create().pk == "letters/41"
    assert Claim.objects.create(id="claims|").pk == "claims/8"
    assert "is 41, the highest number in use is 41" in run("letters")


# The command as it is, held up between its look at rows and counter and its write.
HELD_UP = """
import sys
from django.core.management import call_command
from django_hilo.management.commands.hilo_raise_max import Command
go_on = Command.raise_if_lower
def raise_if_lower(*arguments):
    print("looked", flush=True)
    sys.stdin.readline()
    go_on(*arguments)
Command.raise_if_lower = raise_if_lower
call_command("hilo_raise_max", sys.argv[1])
"""


class Case(NamedTuple):
    model: type[models.Model]
    collection: str
    insert: str
    last: Callable[[], int]

    def insert_by_sql(self, number: int) -> None:
        """Insert a row that no counter knows of, as an import by SQL does."""
        key = number if self.model is Item else f"{self.collection}/{number}"
        execute(self.insert, key)


def last_of(model: type[models.Model]) -> Callable[[], int]:
    def last() -> int:
        target = resolve(model)
        return target.source.read_max(target.using)

    return last


CASES = {
    "orders": Case(
        Order,
        "orders",
        "INSERT INTO records_order (id, name) VALUES (%s, '')",
        last_of(Order),
    ),
    "letters": Case(
        Letter,
        "letters",
        "INSERT INTO records_letter (id) VALUES (%s)",
        lambda: last_gapless_number("letters"),
    ),
    "items": Case(
        Item,
        "numbers_item",
        "INSERT INTO numbers_item (id, name) VALUES (%s, '')",
        last_of(Item),
    ),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_saw_may_be_old_when_it_writes(case):
    with writers() as start:
        before = start().save(case.model.__name__, 1)
        imported = case.last() + 5
        case.insert_by_sql(imported)
        process = warm.Popen(
            [sys.executable, "-c", PREAMBLE + HELD_UP, case.collection],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout.readline() == "looked\n"
            new = start().take(case.model.__name__, 500)
            last = case.last()
            assert last > imported
            told, _ = process.communicate("go on\n", PATIENCE)
        finally:
            process.kill()
            process.communicate()
        assert (process.returncode, case.last()) == (0, last), told
        assert f"to {imported}." in told
        after = start().save(case.model.__name__, 40)
        ids = [*before, *new, *after]
        assert len(set(ids)) == len(ids)
