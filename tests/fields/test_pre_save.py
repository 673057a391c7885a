"""Receivers of pre_save see with integer keys what they see with BigAutoField."""

from contextlib import contextmanager, nullcontext

import pytest
from django.core.serializers.base import DeserializedObject
from django.db import IntegrityError, connection, models, transaction
from django.db.models.signals import pre_save
from django.test.utils import isolate_apps

from django_hilo.exceptions import HiLoError
from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.generator import next_number, next_numbers
from django_hilo.managers import HiLoManager
from tests.apps.numbers.models import Item, ItemProxy, SpecialItem
from tests.apps.records.models import Order

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]

KEYS = [models.BigAutoField, HiLoBigAutoField]


class Refused(Exception):
    pass


def refuse(instance):
    """Refuse to save an object of this name, as a receiver may."""
    if instance.name == "refused":
        raise Refused


@contextmanager
def made(*kinds):
    """Make the tables of these models, and drop them at the end."""
    with connection.schema_editor() as editor:
        for model in kinds:
            editor.create_model(model)
    yield
    with connection.schema_editor() as editor:
        for model in reversed(kinds):
            editor.delete_model(model)


@pytest.fixture(params=KEYS)
def kinds(request):
    with isolate_apps("tests.apps.records"):

        class Topic(models.Model):
            id = request.param(primary_key=True)
            name = models.CharField(max_length=20, unique=True)

            class Meta:
                app_label = "records"

        class TopicProxy(Topic):
            class Meta:
                app_label = "records"
                proxy = True

        class Poll(Topic):
            extra = models.CharField(max_length=20, unique=True)

            class Meta:
                app_label = "records"

        class Answer(models.Model):
            id = request.param(primary_key=True)
            topic = models.ForeignKey(Topic, models.CASCADE)

            class Meta:
                app_label = "records"

        with made(Topic, Poll, Answer):
            yield {each.__name__: each for each in (Topic, TopicProxy, Poll, Answer)}


@pytest.fixture
def see(receive):
    """Note the keys that receivers see, after what they do themselves."""

    def start(model, act=None):
        seen = []

        def receiver(instance, **kwargs):
            seen.append((instance.pk, instance.id))
            if act is not None:
                act(instance)

        receive(pre_save, receiver, model)
        return seen

    return start


NONE = (None, None)


def twin_of(instance):
    """Copy as copy.copy(), which looks for the class among the installed apps."""
    twin = type(instance).__new__(type(instance))
    vars(twin).update(instance.__getstate__())
    return twin


class TestAsWithBigAutoField:
    @pytest.mark.parametrize("name", ["Topic", "TopicProxy", "Poll"])
    def test_a_new_object_has_no_key(self, kinds, see, name):
        model = kinds[name]
        seen = see(model)
        new = model(name="a")
        new.save()
        model.objects.create(name="b", **({"extra": "b"} if name == "Poll" else {}))
        model.objects.get_or_create(name="b")
        assert seen == [NONE, NONE]
        assert None not in (new.pk, new.id)
        new.save()
        new.save(update_fields=["name"])
        assert seen[2:] == [(new.pk, new.pk)] * 2
        assert model.objects.count() == 2

    def test_explicit_keys_are_seen(self, kinds, see):
        seen = see(kinds["Topic"])
        kinds["Topic"].objects.create(pk=5, name="a")
        DeserializedObject(kinds["Topic"](pk=6, name="b")).save()
        DeserializedObject(kinds["Topic"](name="c")).save()
        assert seen == [(5, 5), (6, 6), NONE]

    def test_a_copy(self, kinds, see):
        topic = kinds["Topic"].objects.create(name="a")
        seen, old = see(kinds["Topic"]), topic.pk
        topic.pk, topic.name = None, "b"
        topic.save()
        assert (seen, topic.pk != old) == ([NONE], True)
        assert set(kinds["Topic"].objects.values_list("name")) == {("a",), ("b",)}

    def test_a_refused_insert(self, kinds, see):
        kinds["Topic"].objects.create(name="a")
        seen, topic = see(kinds["Topic"]), kinds["Topic"](name="a")
        for _ in range(2):
            with pytest.raises(IntegrityError), transaction.atomic():
                topic.save()
        topic.name = "b"
        topic.save()
        topic.save()
        assert seen == [NONE] * 3 + [(topic.pk, topic.pk)]

    def test_a_refused_child(self, kinds, see):
        poll = kinds["Poll"]
        poll.objects.create(name="a", extra="a")
        seen, new = see(poll), poll(name="a", extra="b")
        for name, extra in [("a", "b"), ("b", "a"), ("b", "c")]:
            new.name, new.extra = name, extra
            if extra == "c":
                new.save()
            else:
                with pytest.raises(IntegrityError), transaction.atomic():
                    new.save()
        # Django sets both keys of a child when the parent's row is inserted, and leaves
        # them; ours are taken off.
        is_ours = isinstance(poll._meta.get_field("id"), HiLoBigAutoField)
        assert seen == [NONE, NONE, NONE if is_ours else (new.pk, new.pk)]
        assert poll.objects.count() == 2

    def test_a_rollback(self, kinds, see):
        seen, topic = see(kinds["Topic"]), kinds["Topic"](name="a")
        with transaction.atomic():
            topic.save()
            transaction.set_rollback(True)
        lost = topic.pk
        topic.save()
        assert seen == [NONE, (lost, lost)]
        assert kinds["Topic"].objects.get().pk == topic.pk

    def test_a_receiver_that_raises(self, kinds, see):
        seen, topic = see(kinds["Topic"], refuse), kinds["Topic"](name="refused")
        for _ in range(2):
            with pytest.raises(Refused):
                topic.save()
        twin = twin_of(topic)
        topic.name, twin.name, twin.pk = "a", "b", None
        topic.save()
        twin.save()
        assert seen == [NONE] * 4
        assert twin.pk != topic.pk

    @pytest.mark.parametrize("name", ["Topic", "Poll"])
    def test_a_receiver_that_sets_a_key(self, kinds, see, name):
        def choose(topic):
            topic.pk = topic.id = 40

        model = kinds[name]
        see(model, choose)
        new = model(name="a")
        new.save()
        assert (new.pk, new.id) == (40, 40)
        assert list(model.objects.values_list("pk", flat=True)) == [40]
        model(name="b").save()  # it updates the row
        assert model.objects.get().name == "b"

    def test_a_receiver_that_saves_the_object(self, kinds, see):
        def save(topic):
            if len(seen) == 1:
                topic.save()

        seen, topic = see(kinds["Topic"], save), kinds["Topic"](name="a")
        topic.save()
        assert (seen, kinds["Topic"].objects.get()) == ([NONE, NONE], topic)

    def test_a_receiver_that_saves_a_copy(self, kinds, see):
        def save(topic):
            if len(seen) == 1:
                twin = twin_of(topic)
                twin.name = "twin"
                twin.save()
                assert topic.pk is None

        seen = see(kinds["Topic"], save)
        kinds["Topic"].objects.create(name="a")
        assert seen == [NONE, NONE]
        names = kinds["Topic"].objects.values_list("name", flat=True)
        assert set(names) == {"a", "twin"}

    def test_a_receiver_that_saves_others(self, kinds, see):
        def save(topic):
            if topic.name == "a":
                kinds["Topic"].objects.create(name="b")
                with pytest.raises(ValueError, match="unsaved related object"):
                    kinds["Answer"].objects.create(topic=topic)

        seen = see(kinds["Topic"], save)
        topic = kinds["Topic"].objects.create(name="a")
        assert seen == [NONE, NONE]
        kinds["Answer"].objects.create(topic=topic)
        assert kinds["Topic"].objects.count() == 2

    def test_no_update_without_a_key(self, kinds, see):
        """A copy of an object whose save failed must not write over its row."""
        kinds["Topic"].objects.create(name="taken")
        topic = kinds["Topic"](name="taken")
        with pytest.raises(IntegrityError), transaction.atomic():
            topic.save()
        twin = twin_of(topic)
        topic.name, twin.name, twin.pk = "a", "b", None
        topic.save()
        for options in ({"update_fields": ["name"]}, {"force_update": True}):
            with pytest.raises(ValueError, match="no primary key"):
                twin.save(**options)
        assert kinds["Topic"].objects.get(pk=topic.pk).name == "a"


class TestNumbers:
    """What is ours alone."""

    def test_it_is_taken_first(self, see):
        def take(item):
            taken.append(Item.objects.next_id())

        taken = []
        see(Item, take)
        assert Item.objects.create().pk < taken[0]

    @pytest.mark.parametrize("model", [Item, ItemProxy, SpecialItem])
    def test_it_is_kept_for_the_next_save(self, see, model):
        see(model, refuse)
        low, item = Item.objects.next_id(), model(name="refused")
        for _ in range(2):
            with pytest.raises(Refused):
                item.save()
        item.name = ""
        item.save()
        assert (item.pk, item.id) == (low + 1, low + 1)
        assert Item.objects.create().pk == low + 2

    def test_it_is_kept_in_a_transaction_that_rolls_back(self, see, new_process):
        """On SQLite the range is bound to it."""
        seen, item = see(Item, refuse), Item(name="refused")
        with pytest.raises(Refused), transaction.atomic():
            item.save()
        kept, item.name = item.pk, ""
        item.save()
        assert (item.pk, seen) == (kept, [NONE, NONE])
        assert Item.objects.create().pk > item.pk

    def test_it_is_seen_once_a_row_has_it(self, see):
        """A plain manager's bulk_create() has inserted what failed before."""
        seen, item = see(Item, refuse), Item(name="refused")
        with pytest.raises(Refused):
            item.save()
        models.QuerySet(Item).bulk_create([item])
        item.name = ""
        item.save()
        assert seen == [NONE, (item.pk, item.pk)]

    @pytest.mark.parametrize("error", [None, Refused])
    def test_a_receiver_may_replace_the_state(self, see, error):
        def act(item):
            item._state = models.base.ModelState()
            if error:
                raise error

        see(Item, act)
        item = Item()
        with pytest.raises(error) if error else nullcontext():
            item.save()
        assert item.pk

    def test_an_explicit_id_that_a_receiver_sets_on_a_loaded_object(self, receive):
        def act(instance, **kwargs):
            instance.pk = "orders/140-A"

        Order.objects.create()
        order = Order.objects.get()
        order.pk = "orders/100-A"
        receive(pre_save, act, Order)
        order.save()
        pre_save.disconnect(act, Order)
        assert 140 not in next_numbers(Order, 200)

    def test_one_that_a_receiver_sets_is_explicit(self, see):
        def choose(item):
            if item.name == "chosen":
                item.pk = low + 5

        low = Item.objects.create().pk
        see(Item, choose)
        Item.objects.create(name="chosen")
        made = [Item.objects.create().pk for _ in range(40)]
        assert low + 5 not in made
        assert Item.objects.count() == 42


@pytest.fixture
def voucher():
    with isolate_apps("tests.apps.records"):

        class Voucher(models.Model):
            id = HiLoBigAutoField(primary_key=True)
            code = HiLoField(anchor=lambda voucher: str(voucher.pk), max_length=128)
            number = GaplessIdField(collection="vouchers", unique=True)
            name = models.CharField(max_length=20, unique=True)
            objects = HiLoManager()

            class Meta:
                app_label = "records"

            def save_base(self, *args, **kwargs):
                self.before = self.pk
                super().save_base(*args, **kwargs)
                self.after = self.pk

        with made(Voucher):
            yield Voucher


def test_other_ids_beside_the_key(voucher, see):
    """Text ids are there before pre_save; those made of the key know it."""
    codes = []
    seen = see(voucher, lambda each: codes.append((each.code, each.number)))
    first = voucher.objects.create(name="a")
    assert codes == [(first.code, "vouchers/1")]
    assert first.code.endswith(f"${first.pk}")
    assert (first.before, first.after) == (None, first.pk)
    new = voucher(name="a")
    with pytest.raises(IntegrityError), transaction.atomic():
        new.save()
    assert (new.pk, new.code, new.number) == (None, None, None)
    new.name = "b"
    new.save()
    assert new.number == "vouchers/2"
    assert new.code.endswith(f"${new.pk}")
    assert seen == [NONE] * 3


@pytest.mark.parametrize(
    ("model", "absurd"), [(Item, 10**18), (Order, f"orders/{10**18}-A")]
)
def test_a_key_that_a_receiver_sets_is_not_absurdly_high(see, model, absurd):
    def set_key(instance):
        instance.pk = absurd

    before = next_number(model)
    see(model, set_key)
    with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
        model(name="a").save()
    assert not model.objects.filter(name="a").exists()
    assert next_number(model) < before + 100
