"""What becomes of the ids of objects whose rows were rolled back.

Ranges are bound to the transaction: by SQLite, and by a counter that the transaction
locked elsewhere. Other processes are real ones.
"""

import copy
import pickle
import re

import pytest
from django.db import IntegrityError, connection, transaction
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


def verbs(queries):
    return [re.match(r"\w+", query["sql"])[0] for query in queries]


@pytest.mark.parametrize("model", [Order, Item])
class TestTheSameObject:
    def test_keeps_its_id(self, model):
        lost = model(name="lost")
        with rolled_back():
            lost.save()
        id = lost.pk
        with pytest.raises(model.DoesNotExist):
            lost.refresh_from_db()
        assert lost.pk == id and not model.objects.filter(pk=id).delete()[0]
        model.objects.create()  # its reservation makes sure

        with CaptureQueriesContext(connection) as queries:
            lost.save()

        is_bound = model is Order or not has_sequences
        assert verbs(queries) == (["INSERT"] if is_bound else ["UPDATE", "INSERT"])
        assert lost.pk == id and model.objects.get(pk=id).name == "lost"
        lost.name = "again"
        lost.save(update_fields=["name"])
        assert model.objects.get(pk=id).name == "again"
        assert len({model.objects.create().pk for _ in range(40)} | {id}) == 41

    def test_another_row_is_not_overwritten(self, model, python):
        lost = model(name="lost")
        with rolled_back():
            lost.save()
        id = lost.pk
        create_elsewhere(python, model.__name__)

        lost.save()

        assert sorted(model.objects.values_list("name", flat=True)) == ["lost", "other"]
        assert (lost.pk == id) == (model is Item and has_sequences)
        assert model.objects.get(pk=lost.pk).name == "lost"

    def test_nor_in_bulk(self, model, python):
        lost = [model(name="lost") for _ in range(3)]
        with rolled_back():
            model.objects.bulk_create(lost)
        create_elsewhere(python, model.__name__)

        model.objects.bulk_create(lost)

        names = sorted(model.objects.values_list("name", flat=True))
        assert names == ["lost"] * 3 + ["other"]
        model.objects.create()

    @pytest.mark.parametrize(
        "options", [{"update_fields": ["name"]}, {"force_update": True}]
    )
    def test_it_is_not_updated_before(self, model, options, python):
        if model is Item and has_sequences:
            pytest.skip("nobody else can have the number")
        lost = model(name="lost")
        with rolled_back():
            lost.save()
        create_elsewhere(python, model.__name__)

        with pytest.raises(HiLoError, match="another row may have this id"):
            lost.save(**options)

        assert model.objects.get().name == "other"
        lost.save()
        lost.name = "updated"
        lost.save(**options)
        names = sorted(model.objects.values_list("name", flat=True))
        assert names == ["other", "updated"]

    @pytest.mark.parametrize(
        "copied",
        [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))],
    )
    @pytest.mark.parametrize("when", ["inside", "after", "at the end"])
    def test_copies_update_the_row_of_the_original(self, model, copied, when):
        lost = model(name="lost")
        with rolled_back():
            lost.save()
            other = copied(lost)
        if when == "after":
            other = copied(lost)
        lost.save()
        if when == "at the end":
            other = copied(lost)
        other.name = "copy"
        if when == "inside" and copied.__name__ == "<lambda>":
            return  # a pickle of an open transaction cannot know

        other.save()

        assert list(model.objects.values_list("pk", "name")) == [(lost.pk, "copy")]

    def test_again_and_again(self, model):
        """The answer belongs to the transaction of its reservation."""
        lost, ids = model(name="lost"), set()
        for _ in range(3):
            with rolled_back():
                lost.save()
                ids.add(lost.pk)
                model.objects.create()
        assert lost.pk in ids and len(ids) == 1
        lost.save()
        assert model.objects.get().pk == lost.pk
        assert model.objects.create().pk not in ids

    def test_in_the_end_another_process_was_faster(self, model, python):
        lost = model(name="lost")
        for _ in range(2):
            with rolled_back():
                lost.save()
        create_elsewhere(python, model.__name__)
        with rolled_back():
            lost.save()
        lost.save()
        assert sorted(model.objects.values_list("name", flat=True)) == ["lost", "other"]

    def test_the_first_answer_holds(self, model, python):
        lost = model(name="lost")
        with rolled_back():
            lost.save()
        id = lost.pk
        model.objects.create(name="mine")
        create_elsewhere(python, model.__name__)
        [model.objects.create(name="mine") for _ in range(70)]
        lost.save()
        assert (lost.pk, model.objects.get(name="lost").pk) == (id, id)

    def test_a_savepoint(self, model):
        lost = model(name="lost")
        with transaction.atomic():
            bind()
            kept = model.objects.create()
            with pytest.raises(Undo), transaction.atomic():
                lost.save()
                raise Undo
            id, later = lost.pk, model.objects.create()
            lost.save()
            kept.save()
        assert lost.pk == id
        assert len({kept.pk, id, later.pk}) == model.objects.count() == 3

    def test_ids_that_were_assigned_only(self, model):
        objects = [model(name="a"), model(name="b")]
        with transaction.atomic():
            bind()
            with pytest.raises(Undo), transaction.atomic():
                if model is Order:
                    model.objects.assign_ids(objects)
                else:
                    model.objects.bulk_create(objects)
                raise Undo
            ids = [each.pk for each in objects]
            model.objects.bulk_create(objects)
        model.objects.create()
        assert [each.pk for each in objects] == ids
        assert model.objects.count() == 3

    def test_an_insert_that_failed_for_another_reason(self, model):
        first = model.objects.create(name="first")
        with pytest.raises(IntegrityError), transaction.atomic():
            bind()
            other = model(name=None)
            other.save()
        id, other.name = other.pk, "second"
        with transaction.atomic():
            other.save()
        assert other.pk == id != first.pk

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


class TestRowsOfOthers:
    """Rows that no counter knows of; they are not written over either."""

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_one_that_sql_inserted(self, when):
        lost = Order(name="lost")
        with rolled_back():
            lost.save()
        if when == "after":
            Order.objects.create(name="mine")  # it makes sure of the number
        execute("INSERT INTO records_order (id, name) VALUES (%s, 'x')", lost.pk)
        with pytest.raises(IntegrityError):
            lost.save()
        lost.save()
        assert Order.objects.filter(name__in=["lost", "x"]).count() == 2

    def test_one_whose_convention_gives_the_same_id(self):
        lost = Manager(name="bob")
        with rolled_back():
            lost.save()
        Manager.objects.create(name="bob", level=7)
        with pytest.raises(IntegrityError):
            lost.save()
        assert Manager.objects.get().level == 7

    def test_one_that_a_plain_bulk_create_met(self):
        execute("INSERT INTO records_plain (id, name) VALUES ('plain-things/1-A', 'x')")
        mine = Plain(name="mine")
        with pytest.raises(IntegrityError):
            Plain.objects.bulk_create([mine])
        with pytest.raises(IntegrityError):
            mine.save()
        mine.save()
        assert set(Plain.objects.values_list("name", flat=True)) == {"mine", "x"}

    def test_bulk_update_is_refused(self, python):
        lost = Order(name="lost")
        with rolled_back():
            lost.save()
        create_elsewhere(python)
        with pytest.raises(HiLoError, match="another row may have this id"):
            Order.objects.bulk_update([lost], ["name"])
        assert Order.objects.get().name == "other"

    def test_an_object_that_another_process_lost_too(self, python):
        """Both had the number; the pickle tells whose it was."""
        mine = Order(name="mine")
        with rolled_back():
            mine.save()
        lose_and_pickle = """
import pickle
from contextlib import suppress
from django.db import transaction
from django_hilo.models import HiLoDocument
order = Order(name="other")
with suppress(ZeroDivisionError), transaction.atomic():
    HiLoDocument(collection="locked-by-loaddata").save_base(raw=True)
    order.save()
    1 / 0
print(pickle.dumps(order).hex())
"""
        other = pickle.loads(bytes.fromhex(python(lose_and_pickle).strip()))
        mine.save()
        other.save()
        assert mine.pk != other.pk
        assert set(Order.objects.values_list("name", flat=True)) == {"mine", "other"}


class TestOrdinarySaves:
    def test_on_another_database(self):
        lost = Order(name="lost")
        with rolled_back():
            lost.save()
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

    def test_without_autocommit_gapless_ids_are_not_refused_for_ever(self):
        transaction.set_autocommit(False)
        try:
            letter = Letter()
            letter.save()
            transaction.rollback()
            letter.save()
            transaction.commit()
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        assert Letter.objects.create().pk != letter.pk


class TestKindsOfFields:
    def test_a_child_of_multi_table_inheritance(self, python):
        lost = Restaurant(name="lost", stars=3)
        with rolled_back():
            lost.save()
        create_elsewhere(python, "Restaurant")
        lost.save()
        stored = dict(Restaurant.objects.values_list("name", "stars"))
        assert stored == {"lost": 3, "other": 0}
        assert lost.pk == lost.id == lost.place_ptr_id

    @pytest.mark.skipif(has_sequences, reason="nobody else can have the number")
    def test_an_integer_key_that_is_held_as_text(self, python):
        lost = Item(name="lost")
        with rolled_back():
            lost.save()
        create_elsewhere(python, "Item")
        lost.pk = str(lost.pk)
        lost.save()
        stored = dict(Item.objects.values_list("name", "pk"))
        assert stored["lost"] == lost.pk != stored["other"]

    def test_it_keeps_both_keys(self):
        lost = Restaurant(name="lost", stars=3)
        with rolled_back():
            lost.save()
        id = lost.pk
        lost.save()
        assert (lost.id, lost.place_ptr_id, Restaurant.objects.get().pk) == (id,) * 3

    @pytest.mark.skipif(has_sequences, reason="nobody else can have the number")
    def test_one_with_an_integer_key(self, python):
        lost = SpecialItem(name="lost")
        with rolled_back():
            lost.save()
        create_elsewhere(python, "SpecialItem")
        lost.save()
        stored = dict(SpecialItem.objects.values_list("name", "pk"))
        assert stored["lost"] == lost.id != stored["other"]

    def test_beside_the_key(self, python):
        lost = Numbered(note="lost")
        with rolled_back():
            lost.save()
        number = lost.number
        python("Numbered.objects.create(note='other')")
        lost.save()
        assert lost.number != number
        assert Numbered.objects.filter(note="lost").get().number == lost.number

    def test_beside_the_key_without_others(self):
        lost = Numbered(note="lost")
        with rolled_back():
            lost.save()
        number = lost.number
        lost.save()
        assert Numbered.objects.get().number == number

    def test_a_part_of_the_key(self, python):
        place = Restaurant.objects.create()
        lost = Seat(place=place)
        with rolled_back():
            lost.save()
        python("Seat.objects.create(place=Place.objects.get())")
        lost.save()
        assert Seat.objects.count() == 2

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
        lost.save()
        assert sorted(Box.objects.values_list("label", flat=True)) == ["lost", "other"]


@sqlite_only
def test_counters_of_other_systems_get_another_id(monkeypatch):
    """Their Max is not told, so nobody knows."""
    execute("CREATE TABLE hibernate_unique_key (next_hi bigint)")
    execute("INSERT INTO hibernate_unique_key VALUES (1)")
    try:
        monkeypatch.setattr(Item._meta.pk, "source", hibernate.HiLo(9))
        lost = Item(name="lost")
        with rolled_back():
            lost.save()
        former = lost.pk
        made = {Item.objects.create().pk for _ in range(5)}
        lost.save()
        assert lost.pk != former and not {former, lost.pk} & made
        assert Item.objects.get(pk=lost.pk).name == "lost"
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
    def test_a_kept_id_that_it_inserts(self):
        lost = Plain(name="lost")
        with rolled_back():
            lost.save()
        id = lost.pk
        Plain.objects.bulk_create([lost])
        for name in "ab":
            lost.name = name
            lost.save()
        assert list(Plain.objects.values_list("pk", "name")) == [(id, "b")]

    def test_a_row_of_its_own_is_not_another(self):
        made = Plain(name="made")
        Plain.objects.bulk_create([made])
        with pytest.raises(IntegrityError):
            made.save(force_insert=True)
        made.name = "again"
        made.save()
        assert list(Plain.objects.values_list("pk", "name")) == [(made.pk, "again")]
