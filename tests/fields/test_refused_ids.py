"""INSERTs that are refused or fail: the first three rows of the table of ids.

A refused INSERT takes the ids off that the save gave, as with a BigAutoField; every
other id stays. SQL inserted the rows that are in the way, so no counter knows of them.
"""

import pickle
import re
from contextlib import contextmanager, nullcontext
from copy import copy

import pytest
from django.db import (
    IntegrityError,
    OperationalError,
    connection,
    models,
    transaction,
)
from django.db.models.signals import post_save, pre_save
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.counters.own import OwnSource
from django_hilo.exceptions import ConcurrencyError
from django_hilo.generator import raise_floor
from django_hilo.managers import HiLoQuerySet
from tests.apps.numbers.models import Box, Item, SpecialItem
from tests.apps.records.models import (
    Bistro,
    Claim,
    Numbered,
    Order,
    OrderLine,
    Person,
    Registered,
    Restaurant,
    Ticket,
)
from tests.support.databases import CHOSEN
from tests.support.rollbacks import bind
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@contextmanager
def bound():
    with transaction.atomic():
        bind()
        yield


in_or_out = pytest.mark.parametrize("around", [nullcontext, bound])


def insert_orders(*numbers):
    for number in numbers:
        execute(
            f"INSERT INTO records_order (id, name) VALUES ('orders/{number}-A', 'x')"
        )


def failures(around, act):
    """Call ``act`` until it succeeds; return how often it was refused."""
    for count in range(40):
        try:
            with around():
                act()
        except IntegrityError:
            continue
        return count
    pytest.fail("It is refused for ever.")


@contextmanager
def failing(error=None, *, after=False):
    """Let each INSERT of rows fail, before or after the database has run it."""

    def wrapper(execute, sql, params, many, context):
        if not re.match("INSERT INTO .(records|numbers)_", sql):
            return execute(sql, params, many, context)
        if after:
            execute(sql, params, many, context)
        raise error or OperationalError("the server's answer is lost")

    with connection.execute_wrapper(wrapper):
        yield


def state_of(instance):
    """Return what Django, and a pickle, know of an instance."""
    state = instance._state
    noted = {name: value for name, value in vars(state).items() if value}
    return {**vars(instance), "_state": {**noted, "adding": state.adding}}


@in_or_out
class TestTheIdsThatTheSaveGaveAreTakenOff:
    @pytest.mark.parametrize("model", [Person, Box])
    def test_of_one_object(self, around, model):
        name = "email" if model is Person else "label"
        model.objects.create(**{name: "a"})
        new = model(**{name: "a"})
        before = state_of(new)
        for _ in range(2):
            with pytest.raises(IntegrityError), around():
                new.save()
            assert new.pk is None and state_of(new) == before
        setattr(new, name, "b")
        new.save()
        assert model.objects.get(**{name: "b"}).pk == new.pk

    @pytest.mark.parametrize("model", [Restaurant, SpecialItem])
    def test_of_a_child_and_its_parent(self, around, model):
        new = model(name="a", **{"stars" if model is Restaurant else "extra": None})
        before = state_of(new)
        with pytest.raises(IntegrityError), around():
            new.save()
        assert state_of(new) == before
        new.stars, new.extra = 1, ""
        new.save()
        assert model.objects.get().pk == new.pk == new.id

    def test_beside_a_key_that_stays(self, around):
        bistro = Bistro(id="places/70-A", stars=None)
        with pytest.raises(IntegrityError), around():
            bistro.save()
        assert (bistro.id, bistro.code) == ("places/70-A", None)

    def test_of_several_batches(self, around):
        people = [Person(email=each) for each in ("a", "b", "a", "c")]
        people[1].pk = "people/70-A"
        before = [state_of(each) for each in people]
        with pytest.raises(IntegrityError), around():
            Person.objects.bulk_create(people, batch_size=1)
        assert [state_of(each) for each in people] == before
        people[2].email = "d"
        Person.objects.bulk_create(people, batch_size=1)
        assert people[1].pk == "people/70-A"
        assert Person.objects.count() == len({each.pk for each in people}) == 4

    def test_a_request_comes_back(self, around):
        Claim.objects.create(name="a")
        claim = Claim(id="claims/", name="a")
        with pytest.raises(IntegrityError), around():
            claim.save()
        assert claim.pk == "claims/"

    def test_of_both_kinds(self, around):
        Registered.objects.create(name="a")
        new = Registered(name="a")
        with pytest.raises(IntegrityError), around():
            new.save()
        assert (new.pk, new.number) == (None, None)
        new.name = "b"
        new.save()
        assert new.number == "registrations/2"

    def test_but_not_those_that_were_there_before(self, around):
        Person.objects.create(email="a")
        assigned = Person.objects.assign_ids([Person(email="a")])[0]
        chosen, new = Person(email="b", pk="people/70-A"), Person(email="a")
        id = assigned.pk
        for act in (assigned.save, lambda: Person.objects.bulk_create([chosen, new])):
            with pytest.raises(IntegrityError), around():
                act()
        assert (assigned.pk, chosen.pk, new.pk) == (id, "people/70-A", None)
        assigned.email = "c"
        with CaptureQueriesContext(connection) as queries:
            assigned.save()
        assert [each["sql"][:6] for each in queries] == ["INSERT"]
        assert Person.objects.get(email="c").pk == id


@in_or_out
class TestRowsOfOthersAreInTheWay:
    @pytest.mark.parametrize("same", [True, False])
    def test_text_ids_go_on_above(self, around, same):
        insert_orders(1, 2, 3)
        order = Order(name="mine")
        make = order.save if same else lambda: Order(name="mine").save()
        assert failures(around, make) == 3
        assert Order.objects.get(name="mine").pk == "orders/4-A"
        assert Order.objects.filter(name="x").count() == 3
        assert failures(around, lambda: Order().save()) == 0

    @pytest.mark.parametrize("same", [True, False])
    def test_integer_keys_too(self, around, same):
        first = Item.objects.create(name="first").pk
        for n in range(1, 4):
            execute(f"INSERT INTO numbers_item (id, name) VALUES ({first + n}, 'x')")
        item = Item(name="mine")
        # The range is dropped, and the next one starts over the rows.
        most = 3 if CHOSEN == "postgres" else 1
        make = item.save if same else lambda: Item(name="mine").save()
        assert failures(around, make) <= most
        assert Item.objects.get(name="mine").pk > first + 3

    def test_in_bulk(self, around):
        insert_orders(2)
        orders = [Order(name="mine") for _ in range(4)]
        assert failures(around, lambda: Order.objects.bulk_create(orders)) == 1
        assert [each.pk for each in orders] == [f"orders/{n}-A" for n in (5, 6, 7, 8)]

    def test_beside_the_key(self, around):
        execute(
            "INSERT INTO records_numbered (number, note) VALUES ('numbers/1-A', '')"
        )
        one = Numbered()
        assert failures(around, one.save) == 1
        assert one.number == "numbers/2-A"
        assert Numbered.objects.count() == 2

    def test_the_first_part_of_the_key_and_a_constraint(self, around):
        execute("INSERT INTO records_place (id, name) VALUES ('p', '')")
        insert = "INSERT INTO records_ticket (place_id, number) VALUES (%s, %s)"
        execute(insert, "p", "seat-tickets/1-A")
        ticket = Ticket(place_id="p")
        assert failures(around, ticket.save) == 1
        assert ticket.number == "seat-tickets/2-A"

    def test_a_graph_of_assigned_ids(self, around):
        """The remedy of transactions.md."""
        insert_orders(1, 2, 3)
        orders = [Order(name="mine") for _ in range(2)]
        Order.objects.assign_ids(orders)
        lines = [OrderLine(order=order) for order in orders]
        with pytest.raises(IntegrityError), around():
            Order.objects.bulk_create(orders)
        raise_floor(Order, 3)
        for order in orders:
            order.pk = None
        Order.objects.assign_ids(orders)
        for line in lines:
            line.order = line.order
        with around():
            Order.objects.bulk_create(orders)
            OrderLine.objects.bulk_create(lines)
        assert OrderLine.objects.filter(order__name="mine").count() == 2

    def test_explicit_ids_and_saved_rows_are_refused_as_in_django(self, around):
        insert_orders(1)
        explicit = Order(id="orders/1-A")
        saved = Order.objects.create(id="orders/7-A")
        for each in (explicit, saved) * 2:
            with pytest.raises(IntegrityError), around():
                each.save(force_insert=True)
        assert (explicit.pk, saved.pk) == ("orders/1-A", "orders/7-A")


class TestTheRowIsThere:
    """What raises after it changes nothing: as in Django."""

    @pytest.mark.parametrize("model", [Order, Item, Restaurant])
    def test_a_receiver_of_post_save(self, model, receive):
        def refuse(**kwargs):
            raise IntegrityError("of another row")

        receive(post_save, refuse, model)
        new = model(name="a")
        with pytest.raises(IntegrityError):
            new.save()
        assert model.objects.get().pk == new.pk
        assert not new._state.adding

    def test_a_receiver_that_saves_the_same_object(self, receive):
        def save(instance, **kwargs):
            if instance.email == "new":
                instance.email = "saved"
                instance.save()
                instance.email = "taken"

        Person.objects.create(email="taken")
        receive(pre_save, save, Person)
        person = Person(email="new")
        with pytest.raises(IntegrityError):  # by its UPDATE
            person.save()
        assert Person.objects.get(email="saved").pk == person.pk
        assert not person._state.adding

    def test_a_method_around_the_insert(self):
        def save_table(self, *args, **options):
            models.Model._save_table(self, *args, **options)
            raise IntegrityError("of another row")

        with isolate_apps("tests.apps.records"):

            class Hooked(Person):
                _save_table = save_table

                class Meta:
                    proxy = True
                    app_label = "records"

            person = Hooked(email="a")
            with pytest.raises(IntegrityError):
                person.save()
        assert Person.objects.get().pk == person.pk

    @pytest.mark.parametrize("model", [Order, Restaurant])
    def test_the_write_of_the_floor(self, model, monkeypatch):
        def refuse(*args):
            raise ConcurrencyError("The database is busy.")

        monkeypatch.setattr(OwnSource, "raise_floor", refuse)
        new = model(id=f"{'orders' if model is Order else 'places'}/70-A")
        with pytest.raises(ConcurrencyError), bound():
            new.save()
        assert new.id.endswith("/70-A")
        assert new._state.adding == (model is Restaurant)  # its own row was not there
        monkeypatch.undo()
        new.save()
        assert model.objects.get().pk == new.pk

    def test_a_method_of_another_queryset(self):
        class Refuses(models.QuerySet):
            def bulk_create(self, objs, *args, **kwargs):
                super().bulk_create(objs, *args, **kwargs)
                raise IntegrityError("of another row")

        order = Order()
        with pytest.raises(IntegrityError):
            type("Both", (HiLoQuerySet, Refuses), {})(Order).bulk_create([order])
        assert Order.objects.get().pk == order.pk

    def test_a_hook_of_the_commit(self):
        def fail():
            raise IntegrityError("of another row")

        order = Order()
        with pytest.raises(IntegrityError), transaction.atomic():
            order.save()
            transaction.on_commit(fail)
        assert Order.objects.get().pk == order.pk


@in_or_out
@pytest.mark.parametrize("model", [Order, Item])
class TestAnotherErrorThanARefusal:
    def test_the_id_is_kept_and_inserted(self, around, model):
        new, many = model(name="a"), [model(name="b"), model(name="b")]
        for act in (new.save, lambda: model.objects.bulk_create(many)):
            with pytest.raises(OperationalError), around(), failing():
                act()
        ids = [each.pk for each in (new, *many)]
        assert None not in ids
        new.save()
        model.objects.bulk_create(many)
        assert [each.pk for each in (new, *many)] == ids
        assert model.objects.count() == 3

    def test_so_does_an_interrupt(self, around, model):
        new = model(name="a")
        with pytest.raises(KeyboardInterrupt), around(), failing(KeyboardInterrupt()):
            new.save()
        id = new.pk
        new.save()
        assert model.objects.get().pk == new.pk == id


@pytest.mark.parametrize("model", [Order, Item])
def test_a_lost_answer_makes_no_second_row(model):
    new = model(name="a")
    with pytest.raises(OperationalError), failing(after=True):
        new.save()
    for _ in range(2):
        with pytest.raises(IntegrityError):
            new.save()
    assert model.objects.get().pk == new.pk
    new.pk = None
    new.save()
    assert model.objects.count() == 2


def test_a_refused_save_inside_of_pre_save(receive):
    """The key of the outer save is hidden meanwhile, and stays its own."""

    first = Box.objects.create(label="taken")
    box, seen = Box(label="taken"), []

    def once(instance, **kwargs):
        if not seen:
            seen.append(instance.pk)
            with pytest.raises(IntegrityError), transaction.atomic():
                instance.save()
            instance.label = "free"

    receive(pre_save, once, Box)
    box.save()
    assert seen == [None]
    assert Box.objects.get(label="free").pk == box.pk == first.pk + 1


def test_a_receiver_of_pre_save_is_no_refusal(receive):
    def refuse(instance, **kwargs):
        raise IntegrityError("of another row")

    order = Order()
    receive(pre_save, refuse, Order)
    with pytest.raises(IntegrityError):
        order.save()
    assert order.pk == "orders/1-A"


@pytest.mark.parametrize("is_text", [True, False])
def test_an_assigned_key_that_is_held_as_text(is_text):
    mine = Item.objects.assign_ids([Item(name="mine")])[0]
    mine.pk = str(mine.pk) if is_text else mine.pk
    other = copy(mine)
    mine.save()
    with pytest.raises(IntegrityError):
        other.save()


def test_an_assigned_object_is_one_insert_elsewhere(python):
    order = Order.objects.assign_ids([Order(name="mine")])[0]
    blob = pickle.dumps(order)
    assert b"django_hilo" not in blob
    text = python(f"""
import pickle
from django.db import connections
from django.test.utils import CaptureQueriesContext, isolate_apps
order = pickle.loads(bytes.fromhex({blob.hex()!r}))
with CaptureQueriesContext(connections["default"]) as queries:
    order.save()
print([each["sql"].split()[0] for each in queries])
""")
    assert text == "['INSERT']"
    assert Order.objects.get().pk == order.pk


def test_a_failed_savepoint_of_integer_keys_in_a_hot_process():
    items = [Item.objects.create() for _ in range(40)]
    for _ in range(3):
        with pytest.raises(IntegrityError), transaction.atomic():
            bind()
            items.append(Item(name="again"))
            Item.objects.create(name=None)
        items[-1].save()
    assert len({each.pk for each in items}) == Item.objects.count() == 43


@pytest.fixture
def hidden_rows():
    """Rows of others are there, and this connection's role may not see them."""
    table = Item._meta.db_table
    execute("DROP ROLE IF EXISTS hilo_blind")
    execute("CREATE ROLE hilo_blind")
    execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO hilo_blind")
    execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO hilo_blind")
    execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    execute(f"CREATE POLICY added ON {table} FOR INSERT WITH CHECK (true)")
    execute(f"CREATE POLICY mine ON {table} FOR SELECT USING (name = 'mine')")
    yield
    execute("RESET ROLE")
    execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    execute(f"DROP POLICY added ON {table}")
    execute(f"DROP POLICY mine ON {table}")
    execute("DROP OWNED BY hilo_blind")
    execute("DROP ROLE hilo_blind")


@pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's row security")
def test_integer_keys_of_rows_that_are_hidden_fail_once(hidden_rows):
    first = Item.objects.create(name="mine").pk
    taken = ", ".join(f"({first + n}, 'x')" for n in range(1, 21))
    execute(f"INSERT INTO numbers_item (id, name) VALUES {taken}")
    execute(
        "SELECT setval('numbers_item_id_seq', GREATEST(%s, last_value)) "
        "FROM numbers_item_id_seq" % (first + 21)
    )
    execute("SET ROLE hilo_blind")
    for _ in range(3):
        assert failures(nullcontext, lambda: Item(name="mine").save()) <= 1
    assert Item.objects.count() == 4
