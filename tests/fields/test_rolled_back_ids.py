"""Objects whose rows were rolled back: the last four rows of the table of ids.

Ranges are bound to the transaction by SQLite, and elsewhere by a counter that the
transaction locked. Other processes are real ones.
"""

import copy
import gc
import pickle
import re
import threading
import weakref
from contextlib import suppress

import pytest
from django.core.serializers.base import DeserializedObject
from django.db import IntegrityError, connection, connections, transaction
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_number
from django_hilo.sources import hibernate
from tests.apps.numbers.models import Box, Item, SpecialItem
from tests.apps.records.models import (
    Letter,
    Manager,
    Numbered,
    Order,
    OrderLine,
    Person,
    Plain,
    Restaurant,
    Seat,
)
from tests.support.databases import CHOSEN
from tests.support.rollbacks import Undo, bind, create_elsewhere, rolled_back
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])
# PostgreSQL's sequences do not roll back, so nobody else gets their numbers.
has_sequences = CHOSEN == "postgres"
sqlite_only = pytest.mark.skipif(CHOSEN != "sqlite", reason="bound by SQLite alone")
bound_keys = pytest.mark.parametrize(
    "model",
    [
        Order,
        pytest.param(Item, marks=pytest.mark.skipif(has_sequences, reason="lasts")),
    ],
)
# Renamed in Django 6.1.
make_savepoint = getattr(transaction, "savepoint_create", transaction.savepoint)
refused = pytest.raises(HiLoError, match="another process may have the id now")


def verbs(queries):
    return [re.match(r"\w+", query["sql"])[0] for query in queries]


def lose(model, **values):
    """Return an object that was saved in a transaction that was rolled back."""
    lost = model(**({"name": "lost"} | values))
    with rolled_back():
        lost.save()
    return lost


def names(model):
    return sorted(model.objects.values_list("name", flat=True))


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite binds its ranges")
@pytest.mark.parametrize("model", [Order, Item])
@pytest.mark.parametrize("around", [transaction.atomic, None])
def test_lasting_ranges_are_as_in_django(model, around, python):
    """An id of a range that was committed belongs to this process alone."""
    lost = model(name="lost")
    with transaction.atomic():
        with pytest.raises(Undo), transaction.atomic():
            lost.save()
            raise Undo
        transaction.set_rollback(around is None)
    id = lost.pk
    create_elsewhere(python, model.__name__)
    with CaptureQueriesContext(connection) as queries:
        lost.save()
    assert verbs(queries) == ["UPDATE", "INSERT"]
    assert lost.pk == id and names(model) == ["lost", "other"]


@sqlite_only
def test_so_are_ids_from_memory():
    Order.objects.create(name="first")
    lost = lose(Order)
    with CaptureQueriesContext(connection) as queries:
        lost.save()
    assert verbs(queries) == ["UPDATE", "INSERT"]


@bound_keys
class TestNobodyElseCanHaveTheNumber:
    def test_the_same_id_is_inserted(self, model):
        lost = lose(model)
        id = lost.pk
        with pytest.raises(model.DoesNotExist):
            lost.refresh_from_db()
        model.objects.create()  # its reservation tells
        with CaptureQueriesContext(connection) as queries:
            lost.save()
        assert verbs(queries) == ["INSERT"]
        assert lost.pk == id and model.objects.get(pk=id).name == "lost"
        lost.name = "again"
        lost.save(update_fields=["name"])
        assert model.objects.get(pk=id).name == "again"
        assert len({model.objects.create().pk for _ in range(40)} | {id}) == 41

    def test_a_reservation_made_now_tells(self, model):
        lost = lose(model)
        id = lost.pk
        lost.save()
        assert model.objects.get().pk == lost.pk == id

    def test_again_and_again(self, model):
        """The answer belongs to the transaction of its reservation."""
        lost, ids = model(name="lost"), set()
        for _ in range(3):
            with rolled_back():
                lost.save()
                ids.add(lost.pk)
                model.objects.create()
        lost.save()
        assert {lost.pk} == ids
        assert model.objects.get().pk == lost.pk
        assert model.objects.create().pk not in ids

    def test_after_a_savepoint(self, model):
        lost = model(name="lost")
        with transaction.atomic():
            bind()
            kept = model.objects.create()
            with pytest.raises(Undo), transaction.atomic(), transaction.atomic():
                lost.save()
                raise Undo
            id, later = lost.pk, model.objects.create()
            lost.save()
            kept.save()
        assert lost.pk == id
        assert len({kept.pk, id, later.pk}) == model.objects.count() == 3

    def test_in_bulk(self, model):
        lost = [model(name="lost") for _ in range(5)]
        with rolled_back():
            model.objects.bulk_create(lost[:3])
            model.objects.assign_ids(lost)
        ids = [each.pk for each in lost]
        model.objects.bulk_create(lost, batch_size=2)
        assert [each.pk for each in lost] == ids
        assert set(model.objects.values_list("pk", flat=True)) == set(ids)

    def test_in_threads(self, model):
        lost = [lose(model) for _ in range(4)]
        ids = {each.pk for each in lost}

        def save(each):
            each.save()
            connection.close()

        threads = [threading.Thread(target=save, args=[each]) for each in lost]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert set(model.objects.values_list("pk", flat=True)) == ids

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_a_copy_is_inserted_once(self, model, copied):
        lost = lose(model)
        other = copied(lost)
        lost.save()
        other.name = "copy"
        with pytest.raises(IntegrityError):
            other.save()
        assert names(model) == ["lost"]

    def test_a_hook_of_the_commit_updates_the_row(self, model):
        order = model(name="a")

        def rename():
            order.name = "b"
            order.save()

        with transaction.atomic():
            transaction.on_commit(rename)
            bind()
            order.save()
            transaction.on_commit(rename)
        assert list(model.objects.values_list("pk", "name")) == [(order.pk, "b")]


@bound_keys
class TestAnotherProcessTookTheNumber:
    @pytest.fixture
    def lost(self, model, python):
        lost = lose(model)
        create_elsewhere(python, model.__name__)
        return lost

    def test_nothing_is_written(self, model, lost):
        id = lost.pk
        for _ in range(2):
            with refused:
                lost.save()
            with refused:
                model.objects.bulk_create([model(name="new"), lost])
            with refused:
                model.objects.assign_ids([lost])
        assert lost.pk == id
        assert names(model) == ["other"]

    @pytest.mark.parametrize("options", ["ignore", "update"])
    def test_nor_where_conflicts_are_passed_over(self, model, lost, options):
        chosen = {f"{options}_conflicts": True}
        if options == "update":
            by_key = connection.features.supports_update_conflicts_with_target
            chosen |= {"update_fields": ["name"]}
            chosen |= {"unique_fields": ["id"]} if by_key else {}
        with refused:
            model.objects.bulk_create([lost], **chosen)
        assert names(model) == ["other"]

    @pytest.mark.parametrize(
        "options", [{"update_fields": ["name"]}, {"force_update": True}]
    )
    def test_nor_by_an_update(self, model, lost, options):
        match = "another row may have this id"
        with pytest.raises(HiLoError, match=match):
            lost.save(**options)
        with pytest.raises(HiLoError, match=match):
            model.objects.bulk_update([lost], ["name"])
        assert names(model) == ["other"]

    def test_the_caller_may_go_on(self, model, lost):
        """As the message says: a new object, or none of this id."""
        with transaction.atomic():
            with refused:
                lost.save()
            model(name="new").save()
            lost.pk = None
            lost.save()
        assert names(model) == ["lost", "new", "other"]

    def test_its_new_objects_are_not_refused(self, model, python):
        lost = [lose(model) for _ in range(3)]
        create_elsewhere(python, model.__name__)
        for each in lost:
            with suppress(HiLoError):
                each.save()
        python(
            "from tests.apps.numbers.models import *\n"
            f"for _ in range(70): {model.__name__}(name='other').save()"
        )
        assert names(model).count("other") == 71

    def test_children_in_memory_are_left_alone(self, model, python):
        if model is Item:
            pytest.skip("once is enough")
        order = Order(name="lost")
        with rolled_back():
            order.save()
            line = OrderLine(order=order)
            line.save()
        create_elsewhere(python)
        id, key = line.pk, line.order_id
        with refused:
            order.save()
        order.pk = None
        order.save()
        assert (line.pk, line.order_id) == (id, key) != (id, order.pk)


def test_an_object_that_another_process_lost_too(python):
    lose_it_too = """
from contextlib import suppress
from django.db import transaction
from django_hilo.models import HiLoDocument
order = Order(name="other")
with suppress(ZeroDivisionError), transaction.atomic():
    HiLoDocument(collection="locked-by-loaddata").save_base(raw=True)
    order.save()
    1 / 0
order.save()
"""
    mine = lose(Order)
    python(lose_it_too)
    with refused:
        mine.save()
    assert names(Order) == ["other"]


class TestRowsOfOthers:
    """Rows that no counter knows of; they are not written over either."""

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_one_that_sql_inserted(self, when):
        lost = lose(Order)
        if when == "after":
            Order.objects.create(name="mine")  # it makes sure of the number
        execute("INSERT INTO records_order (id, name) VALUES (%s, 'x')", lost.pk)
        for _ in range(2):
            with pytest.raises(IntegrityError):
                lost.save()
        lost.pk = None
        lost.save()
        assert Order.objects.filter(name__in=["lost", "x"]).count() == 2

    def test_one_whose_convention_gives_the_same_id(self):
        lost = lose(Manager, name="bob")
        Manager.objects.create(name="bob", level=7)
        with pytest.raises(IntegrityError):
            lost.save()
        assert Manager.objects.get().level == 7

    @sqlite_only
    @pytest.mark.parametrize("by", ["bulk_create", "SQL"])
    def test_keys_that_the_default_has_given_meanwhile(self, by):
        lost = Box(label="lost")
        with rolled_back():
            lost.save()
        if by == "SQL":
            execute("INSERT INTO numbers_box (label, text) VALUES ('other', '')")
        else:
            QuerySet(Box).bulk_create([Box(label="other")])
        assert Box.objects.get().pk == lost.pk
        with refused:
            lost.save()
        assert Box.objects.get().label == "other"


class TestKindsOfFields:
    @pytest.mark.parametrize(
        "model",
        [
            Restaurant,
            pytest.param(
                SpecialItem, marks=pytest.mark.skipif(has_sequences, reason="lasts")
            ),
        ],
    )
    @pytest.mark.parametrize("is_taken", [True, False])
    def test_children_by_multi_table_inheritance(self, model, is_taken, python):
        lost = lose(model)
        id = lost.pk
        if is_taken:
            create_elsewhere(python, model.__name__)
            with refused:
                lost.save()
            assert names(model) == ["other"]
        else:
            lost.save()
            assert names(model) == ["lost"]
        link = "place_ptr_id" if model is Restaurant else "item_ptr_id"
        assert lost.pk == lost.id == getattr(lost, link) == id

    def test_a_fixture_of_a_child(self, python):
        lost = lose(Restaurant)
        create_elsewhere(python, "Restaurant")
        with refused:
            DeserializedObject(lost).save()
        assert names(Restaurant) == ["other"]

    @pytest.mark.skipif(has_sequences, reason="nobody else can have the number")
    def test_an_integer_key_that_is_held_as_text(self, python):
        lost = lose(Item)
        create_elsewhere(python, "Item")
        lost.pk = str(lost.pk)
        with refused:
            lost.save()
        assert names(Item) == ["other"]

    @pytest.mark.parametrize("is_taken", [True, False])
    def test_beside_the_key(self, is_taken, python):
        lost = Numbered(note="lost")
        with rolled_back():
            lost.save()
        number = lost.number
        if is_taken:
            python("Numbered.objects.create(note='other')")
            with refused:
                lost.save()
            assert Numbered.objects.get().note == "other"
        else:
            lost.save()
            assert Numbered.objects.get().number == lost.number == number

    def test_a_part_of_the_key(self, python):
        place = Restaurant.objects.create()
        lost = Seat(place=place)
        with rolled_back():
            lost.save()
        python("Seat.objects.create(place=Place.objects.get())")
        with refused:
            lost.save()
        assert Seat.objects.count() == 1

    def test_an_object_that_needs_no_id_any_more(self):
        """Another unique column is taken: the number stays the object's own."""
        lost = Person(email="lost")
        with rolled_back():
            lost.save()
        id = lost.pk
        Person.objects.create(email="lost")
        for _ in range(2):
            with pytest.raises(IntegrityError):
                lost.save()
        lost.email = "other"
        lost.save()
        assert Person.objects.get(email="other").pk == lost.pk == id


class TestAsInDjango:
    def test_on_another_database(self):
        lost = lose(Order)
        lost.save(using="other")
        lost.save(using="other", update_fields=["name"])
        assert Order.objects.using("other").get().pk == lost.pk

    def test_a_number_beside_the_key_of_a_row_that_exists(self):
        row = Numbered.objects.create()
        Numbered.objects.update(number=None)
        row.refresh_from_db()
        with rolled_back():
            Numbered.objects.assign_ids([row])
        row.note = "a"
        row.save(update_fields=["note"])
        row.save()
        assert (Numbered.objects.get().number, row.note) == (row.number, "a")

    def test_without_autocommit_nobody_knows(self):
        """The transaction's end cannot be seen; the page says to set None."""
        transaction.set_autocommit(False)
        try:
            letter, order = Letter(), Order(name="lost")
            letter.save()
            order.save()
            transaction.rollback()
            letter.pk = order.pk = None
            letter.save()
            order.save()
            transaction.commit()
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        assert Letter.objects.create().pk != letter.pk
        assert names(Order) == ["lost"]

    @pytest.mark.parametrize("when", ["inside", "after", "at the end"])
    def test_a_pickle_holds_plain_values(self, when):
        lost, blob = Order(name="lost"), b""
        with rolled_back():
            lost.save()
            blob = pickle.dumps(lost)
        if when != "inside":
            blob = pickle.dumps(lost)
        if when == "at the end":
            lost.save()
            blob = pickle.dumps(lost)
        assert b"django_hilo" not in blob
        other = pickle.loads(blob)
        other.name = "copy"
        other.save()
        assert list(Order.objects.values_list("pk", "name")) == [(lost.pk, "copy")]


@sqlite_only
def test_counters_of_other_systems_are_not_told(monkeypatch):
    execute("CREATE TABLE hibernate_unique_key (next_hi bigint)")
    execute("INSERT INTO hibernate_unique_key VALUES (1)")
    try:
        monkeypatch.setattr(Item._meta.pk, "source", hibernate.HiLo(9))
        lost = lose(Item)
        former = lost.pk
        made = {Item.objects.create().pk for _ in range(5)}
        with refused:
            lost.save()
        assert former not in made
        assert not Item.objects.filter(name="lost").exists()
    finally:
        execute("DROP TABLE hibernate_unique_key")


@sqlite_only
def test_sql_that_begins_the_transaction_burns_the_numbers():
    execute("BEGIN")
    given = {next_number(Order) for _ in range(3)}
    execute("ROLLBACK")
    assert not given & {next_number(Order) for _ in range(40)}


def test_burnt_numbers_are_not_given_again():
    given = set()
    for _ in range(3):
        with rolled_back():
            numbers = {next_number(Order) for _ in range(3)}
            assert not given & numbers
            given |= numbers
    with transaction.atomic():
        assert next_number(Order) not in given
    assert not given & {next_number(Order) for _ in range(100)}


class TestPlainManagers:
    def test_an_id_that_it_inserts_again(self):
        lost = lose(Plain)
        id = lost.pk
        Plain.objects.bulk_create([lost])
        for name in "ab":
            lost.name = name
            lost.save()
        assert list(Plain.objects.values_list("pk", "name")) == [(id, "b")]

    def test_nothing_is_written_if_another_process_took_the_number(self, python):
        lost = lose(Plain)
        create_elsewhere(python, "Plain")
        with refused:
            Plain.objects.bulk_create([lost])
        assert names(Plain) == ["other"]


@pytest.mark.parametrize("model", [Order, Letter])
@pytest.mark.parametrize("is_undone", [True, False])
def test_objects_that_are_kept_keep_no_connection(model, is_undone):
    """Thirty threads end, and what they saved stays."""
    kept, wrappers = [], []

    def work():
        with transaction.atomic():
            bind()
            kept.append(model(name=None if model is Letter else "a"))
            kept[-1].save()
            transaction.set_rollback(is_undone)
        wrappers.append(weakref.ref(connections["default"]))
        connection.close()

    for _ in range(30):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert model.objects.count() == (0 if is_undone else 30)
    field = model._meta.pk
    assert {field.ids.is_rolled_back(each, "default") for each in kept} == {is_undone}
    assert not [each for each in wrappers if each() is not None]
