import copy
import pickle
from contextlib import nullcontext

import pytest
from django.core import serializers
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.db.models.signals import post_save
from django.test.utils import CaptureQueriesContext

from django_hilo.counters import next_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.models import GaplessCounter
from tests.apps.records.models import Claim, Letter, PlainLetter, Registered
from tests.support.rollbacks import Undo

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_a_rollback_gives_the_number_back():
    with pytest.raises(Undo), transaction.atomic():
        assert Letter.objects.create().pk == "letters/1"
        with pytest.raises(Undo), transaction.atomic():
            assert Letter.objects.create().pk == "letters/2"
            raise Undo
        assert Letter.objects.create().pk == "letters/2"
        raise Undo
    assert Letter.objects.create().pk == "letters/1"


class TestAfterARollback:
    """The same object saved again must not take another row's id."""

    def test_it_gets_a_number_of_its_own(self):
        lost = Letter(name="lost")
        with pytest.raises(Undo), transaction.atomic():
            lost.save()
            raise Undo
        other = Letter.objects.create(name="other")
        assert lost.pk == other.pk == "letters/1"

        lost.save()

        assert lost.pk == "letters/2"
        assert set(Letter.objects.values_list("pk", "name")) == {
            ("letters/1", "other"),
            ("letters/2", "lost"),
        }
        lost.name = "again"
        lost.save()
        assert Letter.objects.get(pk="letters/2").name == "again"

    def test_none_is_missing_when_it_is_saved_until_it_stays(self):
        letter, more = Letter(), [Registered(), Registered()]
        for _ in range(3):
            with pytest.raises(Undo), transaction.atomic():
                letter.save()
                Registered.objects.bulk_create(more)
                raise Undo
        letter.save()
        Registered.objects.bulk_create(more)
        assert letter.pk == "letters/1"
        assert [each.number for each in more] == ["registrations/1", "registrations/2"]

    def test_another_database_has_numbers_of_its_own(self):
        letter = Letter()
        with pytest.raises(Undo), transaction.atomic("other"):
            Letter.objects.using("other").bulk_create([Letter(), Letter(), letter])
            raise Undo
        letter.save(using="default")
        assert letter.pk == "letters/1"

    def test_hooks_of_the_commit_may_save_it(self):
        letter, other = Letter(name="a"), Letter(name="b")

        def rename():
            for each in (letter, other):
                each.name += "!"
                each.save()

        with transaction.atomic():
            transaction.on_commit(rename)
            letter.save()
            other.save()
        assert set(Letter.objects.values_list("pk", "name")) == {
            ("letters/1", "a!"),
            ("letters/2", "b!"),
        }

    @pytest.mark.parametrize("in_a_block", [True, False])
    def test_a_hook_that_fails_undoes_nothing(self, in_a_block):
        letter = Letter(name="a")

        def fail():
            raise Undo

        def hook(**kwargs):
            transaction.on_commit(fail)

        post_save.connect(hook, Letter)
        try:
            block = transaction.atomic() if in_a_block else nullcontext()
            with pytest.raises(Undo), block:
                if in_a_block:
                    transaction.on_commit(fail)
                letter.save()
        finally:
            post_save.disconnect(hook, Letter)
        letter.name = "b"
        letter.save()
        assert list(Letter.objects.values_list("pk", "name")) == [("letters/1", "b")]

    def test_without_autocommit(self):
        letter = Letter(name="a")
        transaction.set_autocommit(False)
        try:
            letter.save()
            transaction.commit()
            letter.name = "b"
            letter.save()
            transaction.commit()
            assert not connection.run_on_commit
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        letter.name = "c"
        letter.save()
        assert list(Letter.objects.values_list("pk", "name")) == [("letters/1", "c")]

    @pytest.mark.parametrize("model", [Letter, Registered, PlainLetter])
    def test_a_receiver_that_fails_leaves_a_new_object(self, model):
        lost = model(name="lost")

        def fail(**kwargs):
            raise Undo

        post_save.connect(fail, model)
        with pytest.raises(Undo):
            lost.save()
        post_save.disconnect(fail, model)
        other = model.objects.create(name="other")
        lost.save()
        rows = model.objects.order_by("name").values_list("name", flat=True)
        assert list(rows) == ["lost", "other"]
        name = "id" if model is Letter else "number"
        numbers = model.objects.order_by(name).values_list(name, flat=True)
        assert [text.partition("/")[2] for text in numbers] == ["1", "2"]
        assert lost.pk != other.pk

    def test_a_failed_save_after_a_rollback(self):
        taken, lost = Registered.objects.create(name="a"), Registered(name="b")
        with pytest.raises(Undo), transaction.atomic():
            lost.save()
            raise Undo
        lost.name = taken.name
        with pytest.raises(IntegrityError):
            lost.save()
        lost.name = "b"
        lost.save()
        stored = Registered.objects.get(name="b")
        assert stored.number == lost.number == "registrations/2"

    def test_it_is_not_updated_in_part(self):
        lost = Letter(name="lost")
        with pytest.raises(Undo), transaction.atomic():
            lost.save()
            raise Undo
        Letter.objects.create(name="other")
        for options in ({"update_fields": ["name"]}, {"force_update": True}):
            with pytest.raises(HiLoError, match="another row may have this id"):
                lost.save(**options)
        assert Letter.objects.get().name == "other"

    def test_after_many_others(self):
        kept, lost = Letter(), []
        with transaction.atomic():
            kept.save()
            for _ in range(3):
                lost += [Letter() for _ in range(20)]
                with pytest.raises(Undo), transaction.atomic():
                    for letter in lost:
                        letter.save()
                    raise Undo
            for letter in lost:
                letter.save()
            kept.save()
        assert [each.pk for each in lost] == [f"letters/{n}" for n in range(2, 62)]
        assert Letter.objects.count() == 61

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_copies_of_what_was_rolled_back_get_another_number(self, copied):
        letter = Letter(name="a")
        with pytest.raises(Undo), transaction.atomic():
            letter.save()
            raise Undo
        again = copied(letter)
        Letter.objects.create(name="b")
        again.save()
        assert again.pk == "letters/2"
        assert Letter.objects.get(pk="letters/1").name == "b"

    def test_copies_and_pickles_work_inside_the_transaction(self):
        with transaction.atomic():
            letter = Letter.objects.create(name="a")
            for copied in (
                copy.copy(letter),
                copy.deepcopy(letter),
                pickle.loads(pickle.dumps(letter)),
            ):
                copied.name = "b"
                copied.save()
        assert list(Letter.objects.values_list("pk", "name")) == [("letters/1", "b")]


def test_what_is_refused_gives_the_number_back():
    Letter.objects.create(name="a")
    letter = Letter(name="a")
    with pytest.raises(IntegrityError):
        letter.save()
    assert letter.pk is None
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            Letter.objects.create(name="a")
        # The caller's transaction was spared.
        assert Letter.objects.create(name="b").pk == "letters/2"
    letter.name = "c"
    letter.save()
    assert letter.pk == "letters/3"


def test_bulk_create_of_missing_ids_beside_explicit_ones():
    Letter.objects.create(id="letters/598")
    made = Letter.objects.bulk_create(
        [Letter(), Letter(id="letters/600"), Letter(), Letter()]
    )
    assert [each.pk for each in made] == [
        "letters/601",
        "letters/600",
        "letters/602",
        "letters/603",
    ]


@pytest.mark.parametrize(
    "passing_over",
    [
        {"ignore_conflicts": True},
        {"update_conflicts": True, "update_fields": ["name"], "unique_fields": ["id"]},
    ],
)
def test_bulk_create_must_not_pass_over_conflicts(passing_over):
    for objects in ([Letter(name="a")], [Claim(id="claims|")]):
        with pytest.raises(ValueError, match="would leave a gap"):
            type(objects[0]).objects.bulk_create(objects, **passing_over)
    assert not GaplessCounter.objects.exists()
    Letter.objects.bulk_create([Letter(id="letters/1")], ignore_conflicts=True)
    Letter.objects.bulk_create([Letter(id="letters/1")], ignore_conflicts=True)
    assert Letter.objects.count() == 1


def test_on_another_database():
    Letter.objects.create()
    assert Letter.objects.using("other").create().pk == "letters/1"
    (made,) = Letter.objects.using("other").bulk_create([Letter()])
    assert made.pk == "letters/2"
    assert next_gapless_number("letters") == 2
    assert next_gapless_number("letters", "other") == 3


def test_saving_again_updates():
    letter = Letter.objects.create(name="a")
    letter.name = "b"
    with CaptureQueriesContext(connection) as queries:
        letter.save()
    assert [query["sql"].split()[0] for query in queries] == ["UPDATE"]
    letter.pk = None
    letter.name = "c"
    letter.save()
    assert letter.pk == "letters/2"


def test_assign_ids_needs_a_transaction():
    letter = Letter()
    with pytest.raises(HiLoError, match="in the transaction that inserts the rows"):
        Letter.objects.assign_ids([letter])
    with transaction.atomic():
        Letter.objects.assign_ids([letter])
        assert letter.pk == "letters/1"
        letter.save()
    assert Letter.objects.get() == letter


def test_a_plain_managers_bulk_create_gives_none():
    for objects in ([Letter()], [PlainLetter()], [Claim(id="claims|")]):
        with (
            pytest.raises(
                HiLoError, match="of a HiLoManager|that is not a HiLoManager"
            ),
            transaction.atomic(),
        ):
            QuerySet(type(objects[0])).bulk_create(objects)
    assert not GaplessCounter.objects.exists()
    QuerySet(Letter).bulk_create([Letter(id="letters/7")])
    assert Letter.objects.create().pk == "letters/8"


def test_beside_a_key():
    assert PlainLetter.objects.create().number == "plain-letters/1"
    one = Registered.objects.create(name="a")
    assert (one.pk, one.number) == ("registereds/1-A", "registrations/1")
    with pytest.raises(IntegrityError):
        Registered.objects.create(name="a")
    assert Registered.objects.create(name="b").number == "registrations/2"
    made = Registered.objects.bulk_create([Registered(), Registered()])
    assert [each.number for each in made] == ["registrations/3", "registrations/4"]
    assert Registered.objects.assign_ids([Registered()])[0].number is None


def test_explicit_ids_raise_the_counter():
    Letter.objects.create(id="letters/500")
    assert Letter.objects.create().pk == "letters/501"
    Letter.objects.create(id="letters/400")
    Letter.objects.create(id="other/900")
    Letter.objects.create(id="letters/900-A")
    assert Letter.objects.create().pk == "letters/502"
    Letter.objects.bulk_create([Letter(id="Letters/600"), Letter()])
    assert Letter.objects.create().pk == "letters/602"


@pytest.mark.parametrize(
    ("key", "stored"), [('"pk": "letters/70",', 70), ("", 1)], ids=["explicit", "none"]
)
def test_fixtures(key, stored):
    text = f'[{{"model": "records.letter", {key} "fields": {{}}}}]'
    for item in serializers.deserialize("json", text):
        item.save()
    assert Letter.objects.get().pk == f"letters/{stored}"
    assert Letter.objects.create().pk == f"letters/{stored + 1}"


def test_an_absurd_id_is_refused():
    with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
        Letter.objects.create(id="letters/9000000000000")
    with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
        Letter.objects.bulk_create([Letter(id="letters/9000000000000")])
    GaplessCounter.objects.create(collection="letters", last=8_999_999_999_999)
    Letter.objects.create(id="letters/9000000000000")


def test_it_survives_migrations():
    field = Registered._meta.get_field("number")
    _, path, args, kwargs = field.deconstruct()
    assert path == "django_hilo.fields.GaplessIdField"
    assert (args, kwargs) == (
        [],
        {"collection": "registrations", "max_length": 64, "unique": True},
    )
