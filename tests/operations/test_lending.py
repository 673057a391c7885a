import pytest

from django_hilo._allocation.find import resolve
from django_hilo._operations.known_counters import known_counter, known_gapless_counter
from django_hilo._operations.lending import lend, take_back
from django_hilo.counters import (
    KeyColumn,
    Range,
    reserve,
    return_range,
    seed_gapless_number,
)
from django_hilo.counters.own import OwnSource
from django_hilo.exceptions import InvalidDocumentId, RangeNotReturned
from django_hilo.models import HiLoDocument
from django_hilo.testing import write_counters
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(databases=["default", "other"])


class TestKnownTarget:
    def test_a_model_spells_it(self):
        assert known_counter("orderLINES").collection == "OrderLines"

    def test_the_database_is_the_models_or_the_callers(self):
        assert known_counter("orders").using == "default"
        assert known_counter("orders", "other").node_tag == "B"

    def test_a_stored_counter_is_enough(self):
        reserve("tickets", 1, using="other")
        assert known_counter("tickets", "other").collection == "tickets"
        with pytest.raises(LookupError, match="'default' has no counter 'tickets/A'"):
            known_counter("tickets")

    def test_asking_makes_no_counter(self):
        with pytest.raises(LookupError, match="Check the spelling"):
            known_counter("ordres")
        with pytest.raises(InvalidDocumentId):
            known_counter("7up")
        assert not HiLoDocument.objects.exists()


@pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite's default.")
def test_what_goes_back_while_another_asks_is_lent_again(monkeypatch):
    target = resolve(Item)
    first = lend(target, 32)
    last = first.range.low + 4
    reserve = OwnSource.reserve

    def return_first(*args, **kwargs):
        assert take_back(target, first.range.high, last, first.ticket) == last
        return reserve(*args, **kwargs)

    monkeypatch.setattr(OwnSource, "reserve", return_first)
    assert lend(target, 10).range == Range(last + 1, last + 10)


@pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite's default.")
def test_a_range_of_keys_may_be_reserved_by_hand():
    column = KeyColumn("numbers_item", "id")
    mine = reserve("numbers_item", 5, node_tag="", column=column)
    theirs = Item.objects.create().pk
    assert theirs == mine.range.high + 1
    write_counters()
    sql = "SELECT seq FROM sqlite_sequence WHERE name = 'numbers_item'"
    assert execute(sql) == [(theirs + 31,)]


class TestKnownGaplessTarget:
    def test_a_model_with_gapless_ids_spells_it(self):
        target = known_gapless_counter("REGISTRATIONS")
        assert (target.collection, target.using) == ("registrations", "default")
        assert known_gapless_counter("letters", "other").using == "other"

    def test_numbers_are_counted_where_the_rows_are(self, settings):
        settings.HILO = {"DATABASE": "other"}
        assert known_gapless_counter("letters").using == "default"
        assert known_gapless_counter("orders").using == "default"

    def test_a_stored_counter_is_enough(self):
        seed_gapless_number("seeded", 7, "other")
        assert known_gapless_counter("seeded", "other").collection == "seeded"
        with pytest.raises(LookupError, match="Check the spelling"):
            known_gapless_counter("seeded")


class TestIssuedRanges:
    def test_only_their_issuer_may_return_them_without_a_ticket(self):
        lend(resolve(Order), 32)
        with pytest.raises(RangeNotReturned):
            return_range("orders", 32, 5, issuer="ravendb-")
        lent = lend(resolve(Order), 32, issuer="ravendb-")
        assert lent.ticket.startswith("ravendb-")
        assert len(lent.ticket) == 32
        assert return_range("orders", 64, 40, issuer="ravendb-") == 40

    @pytest.mark.parametrize("last", [-5, 0, 31, 32, 65])
    def test_one_number_of_them_is_used_at_least(self, last):
        lend(resolve(Order), 32)
        lend(resolve(Order), 32, issuer="ravendb-")
        with pytest.raises(RangeNotReturned):
            return_range("orders", 64, last, issuer="ravendb-")

    def test_a_second_delivery_of_a_return_is_refused(self):
        """RavenDB's protocol takes it, and gives the next client's range again."""
        lend(resolve(Order), 64, issuer="ravendb-")
        return_range("orders", 64, 32, issuer="ravendb-")
        lend(resolve(Order), 32, issuer="ravendb-")
        with pytest.raises(RangeNotReturned):
            return_range("orders", 64, 32, issuer="ravendb-")

    def test_the_ticket_works_too(self):
        lent = lend(resolve(Order), 32, issuer="ravendb-")
        assert return_range("orders", 32, 0, lent.ticket) == 0

    def test_no_mark_returns_nothing(self):
        lend(resolve(Order), 32)
        with pytest.raises(RangeNotReturned):
            return_range("orders", 32, 5)
