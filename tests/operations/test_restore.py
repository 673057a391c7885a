"""Counters and tables that fall back while processes run; docs/how-to/run-books.md."""

import json
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from django.db import connection, models, transaction

from django_hilo.counters import raise_floor, read_max
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_number, next_numbers, return_ranges
from django_hilo.identifiers import parse
from django_hilo.models import GaplessCounter, HiLoDocument
from tests.apps.numbers.models import Item
from tests.apps.records.models import Letter, Order
from tests.support import writers as writing
from tests.support.commands import told_by
from tests.support.databases import CHOSEN
from tests.support.sql import execute
from tests.support.writers import Backup, Writer

pytestmark = pytest.mark.django_db(transaction=True)

COUNTERS = (HiLoDocument, GaplessCounter)


@pytest.fixture
def writer() -> Iterator[Callable[[], Writer]]:
    """Start processes that run on until the test is over."""
    with writing.writers() as start:
        yield start


@pytest.fixture
def backup() -> Iterator[Callable[..., Backup]]:
    taken = []

    def take(*backed_up: type[models.Model]) -> Backup:
        taken.append(Backup(*backed_up))
        return taken[-1]

    yield take
    for each in taken:
        each.drop()


def raise_max(*arguments: str) -> str:
    return told_by("hilo_raise_max", *arguments)


def numbers(ids: list[str]) -> list[int]:
    return [parse(each).number for each in ids]


def stored(model: type[models.Model] = Order) -> list[str]:
    return list(model.objects.values_list("pk", flat=True))


def disjoint(*families: list) -> bool:
    together = [each for family in families for each in family]
    return len(set(together)) == len(together)


class TestEverything:
    def test_a_process_that_runs_on_gives_no_number_again(self, writer, backup):
        running = writer()
        before = running.save("Order", 5)
        copy = backup(Order, *COUNTERS)
        lost = running.save("Order", 100)
        copy.restore()
        after = running.save("Order", 200)
        assert disjoint(before, lost, after)
        assert min(numbers(after)) > max(numbers(lost))
        assert sorted(stored()) == sorted(before + after)

    def test_rows_that_were_lost_give_their_ids_to_others(self, writer, backup):
        """Nobody knows them any more: neither the tables nor the counters."""
        running = writer()
        before = running.save("Order", 5)
        copy = backup(Order, *COUNTERS)
        lost = running.save("Order", 100)
        running.stop()
        copy.restore()
        assert "is 32, the highest number in use is 5" in raise_max("orders")
        new = writer().save("Order", 50)
        assert disjoint(before, new)
        assert set(new) & set(lost)

    def test_what_running_processes_hold_is_not_seen(self, writer, backup):
        """So all are restarted, or the counters are loaded as they were."""
        running = writer()
        running.save("Order", 5)
        copy = backup(Order, *COUNTERS)
        lost = running.save("Order", 50)  # it holds numbers over these now
        copy.restore()
        raise_max()
        new = writer().save("Order", 150)
        told = running.try_to_save("Order", 40)
        refused = [key for key, saved in told if not saved]
        assert refused
        assert set(refused) <= set(new), "and the key kept them apart"
        assert min(numbers([key for key, _ in told])) == max(numbers(lost)) + 1

    def test_counters_that_were_saved_come_back_over_the_older(
        self, writer, backup, tmp_path
    ):
        """The exact cure, with all processes running on: loaddata never lowers one."""
        running = writer()
        before = running.save("Order", 5)
        copy = backup(Order, *COUNTERS)
        lost = running.save("Order", 50)
        fixture = tmp_path / "counters.json"
        call_command("dumpdata", "django_hilo", output=str(fixture), verbosity=0)
        copy.restore()
        call_command("loaddata", str(fixture), verbosity=0)
        raise_max()
        new = writer().save("Order", 150)
        after = running.save("Order", 150)
        assert disjoint(before, lost, new, after)

    def test_a_return_after_it_is_refused(self, writer, backup):
        """Or the numbers that a new process was given meanwhile would come again."""
        running = writer()
        running.save("Order", 5)
        copy = backup(*COUNTERS)
        running.save("Order", 50)
        copy.restore()
        raise_max()
        highest = read_max("orders")
        new = writer()
        ids = new.save("Order", 1)
        running.stop()
        assert read_max("orders") > highest
        assert disjoint(ids, writer().save("Order", 1))


class TestTablesOnly:
    def test_nothing_is_to_be_mended(self, writer, backup):
        running = writer()
        before = running.save("Order", 5)
        copy = backup(Order)
        lost = running.save("Order", 50)
        copy.restore()
        assert "was raised" not in raise_max()
        new = writer().save("Order", 50)
        assert disjoint(before, lost, new, running.save("Order", 50))


def truncate() -> None:
    HiLoDocument.objects.all().delete()


def lower_by_sql() -> None:
    execute("UPDATE django_hilo_hilodocument SET max = 3, floor = 0")


class TestCountersOnly:
    @pytest.mark.parametrize("fall_back", [truncate, lower_by_sql])
    def test_a_process_that_runs_on_goes_on_over_its_own(self, writer, fall_back):
        running = writer()
        before = running.save("Order", 40)
        fall_back()
        assert disjoint(before, running.save("Order", 200))

    def test_a_new_process_meets_the_rows_until_max_is_raised(self, writer):
        running = writer()
        before = running.save("Order", 40)
        running.stop()
        lower_by_sql()
        told = writer().try_to_save("Order", 10)
        assert [saved for _, saved in told] == [False] * 10
        assert {key for key, _ in told} <= set(before)
        assert "to 40." in raise_max("orders")
        assert disjoint(before, writer().save("Order", 40))

    def test_a_counter_that_is_raised_over_them_does(self, writer):
        """As in the admin: to the Max that hilo_show told before, or far over it."""
        running = writer()
        before = running.save("Order", 40)
        highest = read_max("orders")
        lower_by_sql()
        raise_floor("orders", highest)
        new = writer().save("Order", 40)
        assert disjoint(before, new, running.save("Order", 100))


@pytest.mark.parametrize("fall_back", [truncate, lower_by_sql])
def test_a_process_that_meets_it_warns_and_goes_on(caplog, fall_back):
    highest = next_numbers("orders", 40)[-1]
    fall_back()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        next_numbers("orders", 100)
        raise ZeroDivisionError
    assert next_numbers("orders", 200)[0] > highest
    next_numbers("orders", 1000)
    # On SQLite it meets it twice: the rollback took the first range back.
    [warning] = set(warnings(caplog))
    fallen = f"fell back to {0 if fall_back is truncate else 3} from at least 40"
    assert f"HiLoDocument 'orders/A' on 'default' {fallen}" in warning
    assert "python manage.py hilo_raise_max --database=default" in warning
    caplog.clear()
    fall_back()
    next_numbers("orders", 5000)
    assert len(warnings(caplog)) == 1, "it was consistent in between"


def save_explicit_id() -> None:
    Order.objects.create(id="orders/500-A")
    next_numbers("orders", 100)


def roll_back() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        save_explicit_id()
        raise ZeroDivisionError


@pytest.mark.parametrize("cause", [save_explicit_id, roll_back, return_ranges])
def test_ordinary_causes_warn_of_nothing(caplog, cause):
    next_numbers("orders", 40)
    next_number("orders")
    with transaction.atomic():
        cause()
    next_numbers("orders", 1000)
    return_ranges()
    next_numbers("orders", 1000)
    assert not warnings(caplog)


def warnings(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


class TestFixtures:
    def test_high_ids(self, writer, tmp_path):
        running = writer()
        before = running.save("Order", 5)
        load(tmp_path, "orders/20-A", "orders/500-A")
        assert read_max("orders") >= 500
        new = writer().save("Order", 40)
        assert min(numbers(new)) > 500
        told = running.try_to_save("Order", 40)
        assert [key for key, saved in told if not saved] == ["orders/20-A"]
        assert disjoint(before, new, [key for key, _ in told])

    def test_ids_by_sql(self, writer):
        running = writer()
        before = running.save("Order", 5)
        execute("INSERT INTO records_order VALUES ('orders/500-A', '')")
        assert "to 500." in raise_max()
        new = writer().save("Order", 40)
        assert min(numbers(new)) > 500
        assert disjoint(before, new, running.save("Order", 100))

    def test_a_number_that_cannot_be_meant(self, tmp_path):
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            load(tmp_path, "orders/4000000000-A")
        assert not Order.objects.exists()
        assert read_max("orders") == 0


def load(folder, *ids: str) -> None:
    rows = [{"model": "records.order", "pk": pk, "fields": {}} for pk in ids]
    (folder / "orders.json").write_text(json.dumps(rows))
    call_command("loaddata", str(folder / "orders.json"), verbosity=0)


class TestGaplessNumbers:
    def test_everything(self, writer, backup):
        """Processes hold none: all go on where the tables are."""
        running = writer()
        before = running.save("Letter", 3)
        copy = backup(Letter, *COUNTERS)
        running.save("Letter", 4)
        copy.restore()
        assert running.save("Letter", 2) == ["letters/4", "letters/5"]
        assert writer().save("Letter", 1) == ["letters/6"]
        assert before == ["letters/1", "letters/2", "letters/3"]

    def test_tables_only_leaves_a_gap(self, writer, backup):
        running = writer()
        running.save("Letter", 3)
        copy = backup(Letter)
        running.save("Letter", 4)
        copy.restore()
        assert "was raised" not in raise_max("letters")
        assert running.save("Letter", 1) == ["letters/8"]

    def test_counters_only(self, writer, backup):
        running = writer()
        running.save("Letter", 3)
        copy = backup(GaplessCounter)
        running.save("Letter", 4)
        copy.restore()
        assert running.try_to_save("Letter", 1) == [(None, False)], "letters/4 exists"
        assert "was raised: 3 to 7" in raise_max("letters")
        assert running.save("Letter", 1) == ["letters/8"]


class TestIntegerKeys:
    """On PostgreSQL from the column's sequence, elsewhere from a counter."""

    def test_a_new_process_starts_over_the_rows_by_itself(self, writer):
        before = writer().save("Item", 40)
        for _ in range(2):
            reset_counter_of_items()
            new = writer().save("Item", 5)
            assert min(new) > max(before)
            before += new
        assert sorted(stored(Item)) == before

    def test_a_process_that_runs_on(self, writer):
        running = writer()
        before = running.save("Item", 40)
        reset_counter_of_items()
        assert disjoint(before, running.save("Item", 200))

    def test_what_running_processes_hold_is_not_seen(self, writer):
        running = writer()
        before = running.save("Item", 40)
        reset_counter_of_items()
        new = writer().save("Item", 40)
        told = running.try_to_save("Item", 40)
        refused = {key for key, saved in told if not saved}
        assert refused and refused <= set(new)
        assert disjoint(before, new)

    def test_raise_max_is_for_those_who_draw_by_sql(self, writer):
        highest = max(writer().save("Item", 40))
        reset_counter_of_items()
        assert f"to {highest}." in raise_max("numbers_item")
        assert "was raised" not in raise_max("numbers_item")
        if CHOSEN == "postgres":
            execute("INSERT INTO numbers_item (name) VALUES ('by SQL')")
            assert Item.objects.get(name="by SQL").pk == highest + 1


def reset_counter_of_items() -> None:
    with connection.cursor() as cursor:
        if CHOSEN == "postgres":
            cursor.execute("ALTER SEQUENCE numbers_item_id_seq RESTART")
        else:
            cursor.execute("UPDATE django_hilo_hilodocument SET max = 0, floor = 0")
        if CHOSEN == "sqlite":
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = 'numbers_item'")
