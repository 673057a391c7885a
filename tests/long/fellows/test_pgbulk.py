import pytest

from tests.long.fellows.market.models import Order, Ticket
from tests.support.databases import CHOSEN

pgbulk = pytest.importorskip("pgbulk")

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(CHOSEN != "postgres", reason="It is for PostgreSQL."),
]


def test_text_keys_are_kept():
    orders = Order.objects.assign_ids([Order(name="tea"), Order(name="coffee")])
    pgbulk.copy(Order, orders)
    assert set(Order.objects.values_list("pk", "name")) == {
        ("orders/1-A", "tea"),
        ("orders/2-A", "coffee"),
    }
    orders[0].name = "milk"
    pgbulk.update(Order, orders, ["name"])
    pgbulk.upsert(
        Order, [*orders, Order(id="orders/3-A", name="new")], ["id"], ["name"]
    )
    assert set(Order.objects.values_list("pk", "name")) == {
        ("orders/1-A", "milk"),
        ("orders/2-A", "coffee"),
        ("orders/3-A", "new"),
    }


def test_integer_keys_are_not():
    """The warning of the page is still true."""
    tickets = Ticket.objects.assign_ids([Ticket(name="tea"), Ticket(name="coffee")])
    pgbulk.copy(Ticket, tickets)
    rows = set(Ticket.objects.values_list("pk", flat=True))
    assert rows.isdisjoint(ticket.pk for ticket in tickets)


def test_integer_keys_are_kept_where_they_tell_rows_apart():
    tickets = Ticket.objects.assign_ids([Ticket(name="tea"), Ticket(name="coffee")])
    pgbulk.upsert(Ticket, tickets, ["id"], ["name"])
    tickets[0].name = "milk"
    pgbulk.upsert(Ticket, tickets, ["id"], ["name"])
    rows = set(Ticket.objects.values_list("pk", "name"))
    assert rows == {(ticket.pk, ticket.name) for ticket in tickets}
