"""Ids of ours that rows of others have already: the next save gives another one.

SQL inserted these rows, so no counter knows of them.
"""

from copy import copy

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_hilo.exceptions import HiLoError
from tests.apps.numbers.models import Item
from tests.apps.records.models import (
    Numbered,
    Order,
    OrderLine,
    Person,
    Registered,
    Seat,
    Ticket,
)
from tests.support.databases import CHOSEN
from tests.support.rollbacks import bind
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)
in_or_out = pytest.mark.parametrize("inside", [False, True])


def insert_orders(*numbers):
    for number in numbers:
        execute(
            f"INSERT INTO records_order (id, name) VALUES ('orders/{number}-A', 'x')"
        )


def save(inside, act):
    """Call ``act``, in a transaction of the test's or in its own."""
    if not inside:
        return act()
    with transaction.atomic():
        bind()
        return act()


def failures(inside, act):
    """Call ``act`` until it succeeds; return how often it was refused."""
    for count in range(20):
        try:
            save(inside, act)
        except IntegrityError:
            continue
        return count
    pytest.fail("It is refused for ever.")


def test_an_integer_key_that_is_held_as_text():
    taken, mine = Item.objects.create(name="x"), Item(name="mine")
    execute(f"INSERT INTO numbers_item (id, name) VALUES ({taken.pk + 1}, 'sql')")
    with pytest.raises(IntegrityError):
        mine.save()
    mine.pk = str(mine.pk)
    mine.save()
    rows = dict(Item.objects.values_list("pk", "name"))
    assert sorted(rows.values()) == ["mine", "sql", "x"]
    assert rows[mine.pk] == "mine"


def test_a_copy_with_its_integer_key_as_text_is_refused():
    mine = Item(name="mine")
    Item.objects.assign_ids([mine])
    mine.pk = str(mine.pk)
    other = copy(mine)
    mine.save()
    with pytest.raises(IntegrityError):
        other.save()


@in_or_out
class TestTextIds:
    def test_new_objects_go_on_above(self, inside):
        insert_orders(1, 2, 3)
        assert failures(inside, lambda: Order(name="mine").save()) == 3
        assert Order.objects.get(name="mine").pk == "orders/4-A"
        assert failures(inside, lambda: Order().save()) == 0

    def test_the_same_object_gets_another_id(self, inside):
        insert_orders(1, 2, 3)
        order = Order(name="mine")
        assert failures(inside, order.save) == 3
        assert order.pk == "orders/4-A"
        assert Order.objects.filter(name="x").count() == 3

    def test_no_row_of_others_is_updated(self, inside):
        insert_orders(1)
        order = Order(name="mine")
        with pytest.raises(IntegrityError):
            save(inside, order.save)
        for options in ({"update_fields": ["name"]}, {"force_update": True}):
            with pytest.raises(HiLoError, match="another row may have this id"):
                order.save(**options)
        assert Order.objects.get().name == "x"

    def test_in_bulk_only_those_that_have_rows_get_another(self, inside):
        insert_orders(2)
        orders = [Order(name="mine") for _ in range(4)]

        def insert():
            Order.objects.bulk_create(orders)

        assert failures(inside, insert) == 1
        ids = [order.pk for order in orders]
        assert [ids[0], *ids[2:]] == ["orders/1-A", "orders/3-A", "orders/4-A"]
        assert ids[1] == "orders/5-A"
        assert Order.objects.filter(name="mine").count() == 4

    def test_the_first_save_of_a_batch_asks_once(self, inside):
        insert_orders(2)
        orders = [Order(name="mine") for _ in range(4)]
        with pytest.raises(IntegrityError):
            save(inside, lambda: Order.objects.bulk_create(orders))
        with CaptureQueriesContext(connection) as queries:
            for order in orders:
                save(inside, order.save)
        asked = [each["sql"] for each in queries if " IN (" in each["sql"]]
        assert len(asked) == (CHOSEN == "sqlite")  # the others name the key
        assert Order.objects.filter(name="mine").count() == 4

    def test_lines_follow(self, inside):
        insert_orders(1)
        order = Order(name="mine")
        line = OrderLine(order=Order.objects.assign_ids([order])[0])
        assert failures(inside, order.save) == 1
        line.save()
        assert OrderLine.objects.get().order.name == "mine"


@in_or_out
class TestOtherFields:
    def test_integer_keys(self, inside):
        Item.objects.create(name="first")
        first = Item.objects.get().pk
        execute(f"INSERT INTO numbers_item (id, name) VALUES ({first + 1}, 'x')")
        item = Item(name="mine")
        assert failures(inside, item.save) <= 1
        assert Item.objects.get(name="mine").pk == item.pk > first + 1
        assert Item.objects.get(pk=first + 1).name == "x"

    def test_beside_the_key(self, inside):
        execute(
            "INSERT INTO records_numbered (number, note) VALUES ('numbers/1-A', '')"
        )
        one = Numbered()
        assert failures(inside, one.save) == 1
        assert one.number == "numbers/2-A"
        assert Numbered.objects.count() == 2

    def test_a_part_of_the_key(self, inside):
        insert = "INSERT INTO records_seat (place_id, number) VALUES ('p', 'seats/1-A')"
        execute("INSERT INTO records_place (id, name) VALUES ('p', '')")
        execute(insert)
        seat = Seat(place_id="p")
        assert failures(inside, seat.save) == 1
        assert (seat.number, Seat.objects.count()) == ("seats/2-A", 2)

    def test_the_first_part_of_the_key_and_a_constraint(self, inside):
        execute("INSERT INTO records_place (id, name) VALUES ('p', ''), ('q', '')")
        insert = "INSERT INTO records_ticket (place_id, number) VALUES (%s, %s)"
        execute(insert, "p", "seat-tickets/1-A")
        for place, number in (("p", "seat-tickets/2-A"), ("q", "seat-tickets/3-A")):
            ticket = Ticket(place_id=place)
            assert failures(inside, ticket.save) == (place == "p")
            assert ticket.number == number

    def test_a_key_beside_a_gapless_number(self, inside):
        insert = "INSERT INTO records_registered (id, number) VALUES (%s, %s)"
        execute(insert, "registereds/1-A", "registrations/99")
        mine = Registered()
        assert failures(inside, mine.save) == 1
        assert (mine.pk, mine.number) == ("registereds/2-A", "registrations/1")

    def test_another_column_that_is_taken_keeps_the_id(self, inside):
        Person.objects.create(email="a")
        person = Person(email="a")
        with pytest.raises(IntegrityError):
            save(inside, person.save)
        id, person.email = person.pk, "b"
        save(inside, person.save)
        assert person.pk == id and Person.objects.get(email="b").pk == id

    def test_explicit_ids_and_saved_rows_are_refused_as_in_django(self, inside):
        insert_orders(1)
        explicit = Order(id="orders/1-A")
        for _ in range(2):
            with pytest.raises(IntegrityError):
                save(inside, lambda: explicit.save(force_insert=True))
        assert explicit.pk == "orders/1-A"
        saved = Order.objects.create(id="orders/7-A")
        for _ in range(2):
            with pytest.raises(IntegrityError):
                save(inside, lambda: saved.save(force_insert=True))
        assert saved.pk == "orders/7-A"


@pytest.mark.parametrize("around", [False, True])
def test_a_failed_savepoint_then_others(around):
    """As a form does whose first try was refused for another reason."""
    Person.objects.create(email="a")
    made = []

    def act():
        person = Person(email="a")
        with pytest.raises(IntegrityError), transaction.atomic():
            person.save()
        person.email = "a-2"
        person.save()
        made.append(person)
        for n in range(3):
            with transaction.atomic():
                made.append(Person.objects.create(email=f"{n}"))

    save(around, act)
    assert len({each.pk for each in made}) == 4
    assert Person.objects.count() == 5


def test_a_failed_savepoint_of_integer_keys_in_a_hot_process():
    items = [Item.objects.create() for _ in range(40)]
    for _ in range(3):
        with pytest.raises(IntegrityError), transaction.atomic():
            bind()
            items.append(Item(name="again"))
            Item.objects.create(name=None)
        items[-1].save()
    assert len({each.pk for each in items}) == Item.objects.count() == 43


@pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's DETAIL")
def test_a_server_that_hides_the_key():
    """As for a role that may not read the column."""
    insert_orders(1)
    order, error = Order(name="mine"), IntegrityError("duplicate key value")
    error.__cause__ = type("UniqueViolation", (Exception,), {"sqlstate": "23505"})()
    Order.objects.assign_ids([order])
    Order._meta.pk.note_refused([order], error, "default")
    with CaptureQueriesContext(connection) as queries:
        order.save()
    assert order.pk == "orders/2-A"
    assert sum(" IN (" in each["sql"] for each in queries) == 1


@pytest.fixture
def hidden_rows():
    """Rows of others are there, and this connection's role may not see them."""
    tables = Order._meta.db_table, Item._meta.db_table
    execute("DROP ROLE IF EXISTS hilo_blind")
    execute("CREATE ROLE hilo_blind")
    execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO hilo_blind")
    execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO hilo_blind")
    for table in tables:
        execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        execute(f"CREATE POLICY added ON {table} FOR INSERT WITH CHECK (true)")
        execute(f"CREATE POLICY mine ON {table} FOR SELECT USING (name = 'mine')")
    yield
    execute("RESET ROLE")
    for table in tables:
        execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        execute(f"DROP POLICY added ON {table}")
        execute(f"DROP POLICY mine ON {table}")
    execute("DROP OWNED BY hilo_blind")
    execute("DROP ROLE hilo_blind")


@pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's row security")
class TestRowsThatAreHidden:
    def test_integer_keys_fail_once(self, hidden_rows):
        first = Item.objects.create(name="mine").pk
        taken = ", ".join(f"({first + n}, 'x')" for n in range(1, 21))
        execute(f"INSERT INTO numbers_item (id, name) VALUES {taken}")
        execute(
            "SELECT setval('numbers_item_id_seq', GREATEST(%s, last_value)) "
            "FROM numbers_item_id_seq" % (first + 21)
        )
        execute("SET ROLE hilo_blind")
        for _ in range(3):
            assert failures(False, lambda: Item(name="mine").save()) <= 1
        assert Item.objects.count() == 4

    def test_one_object_gets_another_id(self, hidden_rows):
        insert_orders(1)
        execute("SET ROLE hilo_blind")
        order = Order(name="mine")
        assert failures(False, order.save) == 1
        assert order.pk == "orders/2-A"

    def test_many_objects_get_other_ids(self, hidden_rows):
        insert_orders(2)
        execute("SET ROLE hilo_blind")
        orders = [Order(name="mine") for _ in range(3)]
        assert failures(False, lambda: Order.objects.bulk_create(orders)) == 1
        assert [each.pk for each in orders] == [f"orders/{n}-A" for n in (4, 5, 6)]
