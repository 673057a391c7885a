"""What becomes of references to objects whose rows were rolled back."""

import pytest
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject

from django_hilo.exceptions import HiLoError
from django_hilo.managers import HiLoQuerySet
from tests.apps.numbers.models import Box, Item, Note
from tests.apps.records.models import (
    Claim,
    Invoice,
    Menu,
    Order,
    OrderLine,
    Remark,
    Reply,
    Restaurant,
)
from tests.support.databases import CHOSEN
from tests.support.rollbacks import create_elsewhere, rolled_back

pytestmark = pytest.mark.django_db(transaction=True)
# PostgreSQL's sequences do not roll back, so nobody else gets their numbers.
has_sequences = CHOSEN == "postgres"
sqlite_only = pytest.mark.skipif(CHOSEN != "sqlite", reason="bound by SQLite alone")


class TestWhatRefersToIt:
    @pytest.fixture
    def lost(self):
        """Two orders with a line each, which were rolled back."""
        orders = [Order(name="a"), Order(name="b")]
        lines = [OrderLine(order=order) for order in orders]
        with rolled_back():
            for order, line in zip(orders, lines, strict=True):
                order.save()
                line.order = order
                line.save()
        return orders, lines

    def test_saved_in_another_order(self, lost):
        orders, lines = lost
        for order, line in reversed(list(zip(orders, lines, strict=True))):
            order.save()
            line.save()
        assert {(each.order.name, each.pk) for each in OrderLine.objects.all()} == {
            ("a", lines[0].pk),
            ("b", lines[1].pk),
        }

    @pytest.mark.parametrize("way", ["save", "bulk_create"])
    def test_lines_follow_an_order_that_gets_another_id(self, lost, way, python):
        orders, lines = lost
        former = [order.pk for order in orders]
        python("Order.objects.bulk_create([Order(name='other'), Order(name='other')])")
        if way == "save":
            for each in orders + lines:
                each.save()
        else:
            Order.objects.bulk_create(orders)
            OrderLine.objects.bulk_create(lines)
        assert not {order.pk for order in orders} & set(former)
        assert [line.order for line in lines] == orders
        names = OrderLine.objects.order_by("order__name").values_list("order__name")
        assert list(names) == [("a",), ("b",)]

    def test_an_anchor_stays(self, python):
        invoice = Invoice(order=Order())
        with rolled_back():
            invoice.order.save()
            invoice.order = invoice.order
            invoice.save()
        former, id = invoice.order.pk, invoice.pk
        create_elsewhere(python)
        invoice.order.save()
        invoice.save()
        assert (invoice.pk, invoice.order_id) == (id, invoice.order.pk)
        assert invoice.pk.endswith(f"${former}")

    @pytest.mark.skipif(has_sequences, reason="nobody else can have the number")
    def test_generic_relations_follow(self, python):
        ContentType.objects.get_for_model(Item)
        item = Item(name="lost")
        with rolled_back():
            item.save()
            note = Note(about=item)
            note.save()
        create_elsewhere(python, "Item")
        item.save()
        note.save()
        assert Note.objects.get().object_id == item.pk
        assert Note.objects.get().about.name == "lost"

    def test_a_relation_to_a_child_of_multi_table_inheritance(self, python):
        restaurant = Restaurant(name="lost")
        with rolled_back():
            restaurant.save()
            menu = Menu(restaurant=restaurant)
            menu.save()
        create_elsewhere(python, "Restaurant")
        restaurant.save()
        menu.save()
        assert Menu.objects.get().restaurant.name == "lost"

    def test_gapless_parents(self):
        claim = Claim(id="claims|", name="lost")
        with rolled_back():
            claim.save()
            reply = Reply(claim=claim)
            reply.save()
        Claim.objects.create(id="claims|", name="other")
        claim.save()
        reply.save()
        assert Reply.objects.get().claim.name == "lost"

    def test_a_line_is_not_saved_before_its_order(self, lost, python):
        orders, lines = lost
        python("Order.objects.bulk_create([Order(name='other'), Order(name='other')])")
        with pytest.raises(HiLoError, match="Save it before the records.OrderLine"):
            lines[0].save()
        with pytest.raises(HiLoError, match="Save it before"):
            orders[0].lines.create()
        assert not OrderLine.objects.exists()

    def test_lines_of_others_stay_where_they_are(self, python):
        order = Order(name="lost")
        with rolled_back():
            order.save()
        python("OrderLine.objects.create(order=Order.objects.create(name='other'))")
        theirs = list(order.lines.all())
        order.save()
        for line in theirs:
            line.save()
        assert OrderLine.objects.get().order.name == "other"

    def test_an_object_without_an_id_of_ours_keeps_the_former_one(self, python):
        """As transactions.md says: set its relation anew."""
        order = Order(name="lost")
        with rolled_back():
            order.save()
            remark = Remark.objects.create(order=order)
        former = order.pk
        create_elsewhere(python)
        order.save()
        remark.save()
        assert remark.order_id == former != order.pk
        remark.order = order
        remark.save()
        assert Remark.objects.get().order.name == "lost"


class TestReferencesThatAreNotWritten:
    @pytest.fixture
    def lost(self):
        order = Order(name="lost")
        with rolled_back():
            order.save()
        return order

    def test_of_updates(self, lost):
        line = OrderLine.objects.create(order=Order.objects.create())
        line.order, line.quantity = lost, 5
        line.save(update_fields=["quantity"])
        OrderLine.objects.bulk_update([line], ["quantity"])
        assert OrderLine.objects.get().quantity == 5
        with pytest.raises(HiLoError, match="Save it before"):
            line.save(update_fields=["order"])

    @sqlite_only
    def test_of_generic_relations(self, python):
        item = Item(name="lost")
        with rolled_back():
            item.save()
        former = item.pk
        python(
            "from tests.apps.numbers.models import Item\n"
            "Item.objects.bulk_create([Item(), Item()])"
        )
        note = Note(about=item)
        note.object_id = former + 1
        note.save()
        item.save()
        note = Note(about=item)
        note.content_type, note.object_id = (
            ContentType.objects.get_for_model(Box),
            former,
        )
        note.save()
        assert Note.objects.get(pk=note.pk).object_id == former != item.pk


class LateLines(models.QuerySet):
    def bulk_create(self, objs, *args, **kwargs):
        for each in objs:
            each.order = self._hints["order"]
        return super().bulk_create(objs, *args, **kwargs)


class LateQuerySet(HiLoQuerySet, LateLines):
    """Another package sets the parents after ours has given the ids."""


def test_parents_that_are_set_late(python):
    order = Order(name="lost")
    with rolled_back():
        order.save()
    create_elsewhere(python)
    rows = LateQuerySet(OrderLine, hints={"order": order})
    with pytest.raises(HiLoError, match="Save it before"):
        rows.bulk_create([OrderLine()])
    order.save()
    rows.bulk_create([OrderLine()])
    assert OrderLine.objects.get().order.name == "lost"


@sqlite_only
@isolate_apps("tests.apps.numbers")
def test_relations_of_a_proxy(python):
    class AboutThings(Note):
        thing = GenericForeignKey("content_type", "object_id")

        class Meta:
            proxy = True
            app_label = "numbers"

    item = Item(name="lost")
    with rolled_back():
        item.save()
    python("from tests.apps.numbers.models import Item; Item.objects.create()")
    with pytest.raises(HiLoError, match="Save it before"):
        HiLoQuerySet(Note).bulk_create([AboutThings(thing=item)])


def test_a_lazy_parent():
    """As request.user is."""
    order = Order.objects.create()
    line = OrderLine.objects.create(order=SimpleLazyObject(lambda: order))
    assert line.order_id == order.pk
    line.save()
