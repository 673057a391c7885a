import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from django_hilo._operations import edit_counter, server_prefixes
from django_hilo._operations.edit_gapless import take_gapless
from django_hilo._operations.highest_numbers import highest_numbers
from django_hilo._operations.known_counters import known_counter
from django_hilo._operations.lending import lend, take_back
from django_hilo._operations.locations import homes
from django_hilo.counters import reserve, return_range
from django_hilo.exceptions import (
    CounterNotLowered,
    HiLoError,
    InvalidDocumentId,
    RangeNotReturned,
)
from django_hilo.generator import next_id, next_ids, next_number, return_ranges
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import Change, counter_changed, range_reserved
from tests.apps.records.models import Order
from tests.support.counters import counter, max_of
from tests.support.sql import execute, hide_table

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture
def told(heard):
    return heard(counter_changed, "change", "old", "new", "user")


def lower(document: HiLoDocument, number: int) -> HiLoDocument:
    state = edit_counter.state_of(document)
    return edit_counter.lower_max(document, number, state=state, user="me")


class TestCreate:
    def test_the_first_range_starts_over_it(self, told):
        edit_counter.create_counter("Tickets", "A", 1024, using="default", user="me")
        assert next_number("tickets") == 1025
        assert told == [(Change.CREATED, None, 1024, "me")]

    def test_on_another_database(self):
        made = edit_counter.create_counter("tickets", "B", 9, using="other", user=None)
        assert edit_counter.database_of(made) == "other"
        assert next_id("tickets", using="other") == "tickets/10-B"
        assert not HiLoDocument.objects.filter(collection="tickets").exists()

    def test_one_at_0_is_told_too(self, told):
        edit_counter.create_counter("tickets", "A", 0, using="default", user="me")
        assert told == [(Change.CREATED, None, 0, "me")]
        assert next_number("tickets") == 1

    @pytest.mark.parametrize("number", [-1, MAX_NUMBER + 1, "7", True, None, 1.0])
    def test_max_is_a_number_from_0_to_2_63_minus_1(self, number):
        with pytest.raises(InvalidDocumentId, match=r"Max .* must be"):
            edit_counter.create_counter("t", "A", number, using="default", user=None)
        assert not HiLoDocument.objects.exists()


class TestRaise:
    def test_the_next_range_starts_over_it(self, told, new_process):
        next_number(Order)
        edit_counter.raise_max(counter(), 500, user="me")
        new_process()
        assert next_number(Order) == 501
        assert told == [(Change.RAISED, 32, 500, "me")]

    def test_what_is_held_goes_on_and_cannot_be_returned_over_it(self, new_process):
        next_number(Order)
        edit_counter.raise_max(counter(), 500, user=None)
        assert next_number(Order) == 2
        assert return_ranges() == 0
        assert max_of() == 500

    def test_it_loses_no_reservation_that_came_in_between(self, python):
        next_number(Order)
        seen = counter()
        python("from django_hilo.counters import reserve; reserve('orders', 100)")
        with pytest.raises(
            CounterNotLowered, match="now 132 and cannot be lowered to 100"
        ):
            edit_counter.raise_max(seen, 100, user=None)
        assert max_of() == 132
        assert edit_counter.raise_max(seen, 200, user=None).max == 200
        assert reserve("orders", 1).range.low == 201

    def test_the_same_max_changes_nothing(self, told):
        reserve("orders", 10)
        before = counter().ticket
        assert edit_counter.raise_max(counter(), 10, user=None).max == 10
        assert counter().ticket == before
        assert not told


class TestLower:
    def test_it_gives_the_numbers_again(self, told, new_process):
        reserve("orders", 100)
        assert lower(counter(), 40).max == 40
        assert told == [(Change.LOWERED, 100, 40, "me")]
        assert next_id(Order) == "orders/41-A"

    def test_the_floor_falls_with_it(self):
        Order.objects.create(id="orders/70-A").delete()
        assert counter().floor == 70
        assert lower(counter(), 0).floor == 0
        assert next_id(Order) == "orders/1-A"

    def test_this_process_gives_nothing_of_its_old_range(self):
        assert next_ids(Order, 3)[-1] == "orders/3-A"
        lower(counter(), 0)
        other = reserve("orders", 32)
        assert next_number(Order) == other.range.high + 1

    def test_it_is_refused_while_a_row_has_a_higher_number(self, told):
        Order.objects.create(id="orders/70-A")
        with pytest.raises(CounterNotLowered, match=r"'orders/70-A'.*lower than 70"):
            lower(counter(), 69)
        assert max_of() == 70
        assert lower(counter(), 70)

    def test_rows_of_other_nodes_and_collections_do_not_count(self):
        reserve("orders", 10)
        Order.objects.create(id="orders/70-B")
        Order.objects.create(id="users/70-A")
        assert lower(counter(), 0).max == 0

    def test_rows_on_every_database_of_the_home_count(self, settings):
        settings.HILO = {"NODE_TAG": "A", "DATABASE": "default"}
        reserve("orders", 100)
        Order.objects.using("other").create(id="orders/70-A")
        with pytest.raises(CounterNotLowered, match=r"records.Order on 'other'"):
            lower(counter(), 60)

    def test_a_table_that_cannot_be_read_refuses_it(self, monkeypatch):
        reserve("orders", 10)
        hide_table(Order, monkeypatch)
        with pytest.raises(CounterNotLowered, match="could not be searched"):
            lower(counter(), 0)

    def test_who_draws_while_it_is_confirmed_is_noticed(self, python):
        reserve("orders", 100)
        seen = counter()
        python("from django_hilo.counters import reserve; reserve('orders', 32)")
        with pytest.raises(CounterNotLowered, match="was changed in the meantime"):
            lower(seen, 40)
        assert max_of() == 132

    def test_a_return_after_it_is_refused(self):
        reserved = reserve("orders", 100)
        lower(counter(), 40)
        with pytest.raises(RangeNotReturned):
            return_range("orders", 100, 99, reserved.ticket)


class TestDelete:
    def test_it_starts_again(self, told):
        next_number(Order)
        document = counter()
        state = edit_counter.state_of(document)
        edit_counter.delete_counter(document, state=state, user="me")
        assert told == [(Change.DELETED, 32, None, "me")]
        assert not HiLoDocument.objects.exists()
        assert next_number(Order) == 1

    def test_it_is_refused_while_rows_exist(self):
        Order.objects.create()
        document = counter()
        with pytest.raises(CounterNotLowered, match="'orders/1-A'"):
            edit_counter.delete_counter(
                document, state=edit_counter.state_of(document), user=None
            )
        assert HiLoDocument.objects.exists()

    def test_who_draws_while_it_is_confirmed_is_noticed(self):
        reserve("orders", 10)
        document = counter()
        state = edit_counter.state_of(document)
        reserve("orders", 10)
        with pytest.raises(CounterNotLowered, match="now 20"):
            edit_counter.delete_counter(document, state=state, user=None)


class TestBlocks:
    def test_a_block_is_nobody_elses(self, told):
        next_number(Order)
        target = edit_counter.counter_of(counter())
        block = lend(target, 1000, user="me")
        assert (block.range.low, block.range.high) == (33, 1032)
        assert told == [(Change.RESERVED, 32, 1032, "me")]
        taken = {next_number(Order) for _ in range(40)}
        assert taken == {*range(2, 33), *range(1033, 1042)}

    def test_its_end_comes_back_with_the_ticket(self, told):
        block = lend(known_counter("orders"), 1000, user="me")
        high, ticket = block.range.high, block.ticket
        with pytest.raises(RangeNotReturned):
            take_back(known_counter("orders"), high, 10, "0" * 32, user="me")
        assert take_back(known_counter("orders"), high, 10, ticket, user="me") == 10
        assert told[1:] == [(Change.RETURNED, 1000, 10, "me")]
        assert reserve("orders", 1).range.low == 11

    def test_it_starts_over_what_this_process_has_seen(self):
        next_ids(Order, 100)
        HiLoDocument.objects.filter(pk="orders/A").update(max=5)
        assert lend(known_counter("orders"), 10, user=None).range.low == 101


def test_an_id_is_shown_as_it_would_be_given(settings):
    reserve("orderlines", 1)
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    assert edit_counter.id_at(counter("orderlines"), 7) == "OrderLines/North/7-A"
    reserve("sortables", 1)
    shown = "sortables/North/0000000000000000007-A"
    assert edit_counter.id_at(counter("sortables"), 7) == shown
    settings.HILO = {"SHOW_NODE_TAG": False, "SEPARATOR": ":"}
    assert edit_counter.id_at(counter("orderlines"), 7) == "OrderLines:North/7"


def test_a_prefix_is_set_and_told(told):
    server_prefixes.set_prefix("A", "North/", using="default", user="me")
    server_prefixes.set_prefix("A", "", using="default", user="me")
    assert ServerPrefix.objects.get().prefix == ""
    assert told == [
        (Change.SET, None, "North/", "me"),
        (Change.SET, "North/", "", "me"),
    ]


def test_a_receiver_that_fails_stops_nobody(receive):
    def fail(**kwargs):
        raise RuntimeError

    receive(counter_changed, fail)
    assert take_gapless("invoices", using="default", user=None) == 1


@pytest.fixture
def client():
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    return client


class OrdersOnOther:
    def db_for_write(self, model, **hints):
        return "other" if model is Order else None

    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


@pytest.fixture(params=[counter_changed, range_reserved])
def bad_receiver(request, receive):
    """A receiver that writes an audit row which the database refuses."""
    Group.objects.create(name="taken")

    def audit(**kwargs):
        Group.objects.create(name="taken")

    receive(request.param, audit)


class TestReceivers:
    @pytest.mark.parametrize(
        ("address", "body"),
        [
            ("/hilo/gapless/orders/next/", {}),
            ("/hilo/collections/orders/ranges/", {"size": 5}),
            ("/hilo/collections/orders/next-id/", {}),
        ],
    )
    def test_what_is_answered_is_never_rolled_back(
        self, client, monkeypatch, bad_receiver, address, body
    ):
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        answers = [client.post(address, body, format="json") for _ in range(4)]
        given = [str(a.json()) for a in answers if a.status_code == 201]
        assert len(set(given)) == len(given)
        assert {a.status_code for a in answers} <= {201, 503}

    def test_a_doomed_transaction_is_told(self, bad_receiver):
        with pytest.raises(HiLoError, match="receiver"), transaction.atomic():
            lent = lend(known_counter("orders"), 5, user="me")
            pytest.fail(f"{lent} will be rolled back")

    def test_outside_a_transaction_it_stops_nobody(self, bad_receiver):
        assert take_gapless("orders", using="default", user=None) == 1
        assert reserve("orders", 5).range.high == 5


class TestTables:
    def test_untagged_ids_of_another_node_count(self, settings):
        settings.HILO = {"NODE_TAG": "B", "SHOW_NODE_TAG": False}
        ServerPrefix.objects.create(node_tag="B", prefix="b-")
        assert Order.objects.create().pk == "orders/b-1"
        settings.HILO = {"NODE_TAG": "A", "SHOW_NODE_TAG": False}
        row = counter(tag="B")
        with pytest.raises(CounterNotLowered, match="orders/b-1"):
            edit_counter.lower_max(row, 0, state=edit_counter.state_of(row), user=None)

    def test_tables_that_a_router_sends_rows_to_count(self, settings):
        settings.DATABASE_ROUTERS = [OrdersOnOther()]
        reserve("orders", 10)
        execute(
            "INSERT INTO records_order (id, name) VALUES ('orders/5-A', '')",
            using="other",
        )
        settings.HILO = {"DATABASE": "default"}
        (found,) = [
            t for t in highest_numbers("orders", "A", "default") if t.using == "other"
        ]
        assert found.id == "orders/5-A"

    def test_a_home_that_the_setting_names_is_one(self, settings):
        settings.DATABASE_ROUTERS = [OrdersOnOther()]
        assert homes() == ["default"]
        settings.HILO = {"DATABASE": "other"}
        assert homes() == ["other"]

    def test_rows_of_the_counter_are_counted(self):
        for key in ("orders/1-A", "orders/2", "orders/9-A", "orders/3-B"):
            Order.objects.create(id=key)
        (found,) = highest_numbers("orders", "A", "default", up_to=8)
        assert (found.id, found.rows) == ("orders/9-A", 2)

    def test_looking_locks_no_writer_out(self):
        Order.objects.create()
        with CaptureQueriesContext(connection) as queries:
            highest_numbers("orders", "A", "default")
        (statement,) = [q["sql"].split()[0] for q in queries]
        assert statement in ("SELECT", "DECLARE")

    def test_a_missing_table_ends_no_transaction(self, monkeypatch):
        hide_table(Order, monkeypatch)
        with transaction.atomic():
            (found,) = highest_numbers("orders", "A", "default")
            assert found.error
            assert Group.objects.count() == 0
