import re

import pytest
from django.db import connection, models
from django.db.models import F, Value
from django.db.models.functions import Lower
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.fields import HiLoField
from django_hilo.fields._anchors import anchor_of
from django_hilo.generator import next_number
from django_hilo.identifiers import anchor_in
from django_hilo.managers import HiLoQuerySet
from django_hilo.models import HiLoDocument
from django_hilo.sharding import bucket_of
from tests.apps.records.models import Invoice, Order, OrderLine

pytestmark = pytest.mark.django_db


def test_a_key_is_enough():
    with CaptureQueriesContext(connection) as queries:
        assert anchor_of(OrderLine(order_id="orders/7-A"), "order") == "orders/7-A"
    assert not queries.captured_queries


def test_an_unsaved_object_that_has_its_id():
    line = OrderLine(order=Order())
    Order.objects.assign_ids([line.order])
    assert anchor_of(line, "order") == "orders/1-A"


def test_through_relations():
    line = OrderLine(order=Order(name="x"))
    assert anchor_of(line, "order__name") == "x"
    Order.objects.create(id="orders/7-A", name="y")
    assert anchor_of(OrderLine(order_id="orders/7-A"), "order__name") == "y"


def test_a_function_and_a_field():
    assert anchor_of(Order(name="x"), lambda order: order.name * 2) == "xx"
    assert anchor_of(Order(name="x"), "name") == "x"


def test_a_function_that_returns_an_object_or_a_number():
    invoice = Invoice(order=Order(id="orders/7-A"))
    assert anchor_of(invoice, lambda each: each.order) == "orders/7-A"
    assert anchor_of(invoice, lambda each: 0) == "0"


@pytest.mark.parametrize("wrong", [True, 1.5, b"orders/7-A", ["orders/7-A"], Order])
def test_a_function_that_returns_something_else(wrong):
    with pytest.raises(
        HiLoError, match=re.escape(f"returned {wrong!r}. Return a string")
    ):
        anchor_of(Order(), lambda order: wrong)


@pytest.mark.parametrize(
    ("instance", "anchor"),
    [
        (Invoice(), "order"),
        (Invoice(), "order__name"),
        (Invoice(order_id="orders/404-A"), "order__name"),
        (Order(name=""), "name"),
        (Order(), lambda order: None),
        (Order(), lambda order: ""),
        (Invoice(order=Order()), lambda invoice: invoice.order),
        (Invoice(), lambda invoice: invoice.order),
    ],
)
def test_what_is_missing(instance, anchor):
    with pytest.raises(HiLoError, match=r"cannot get an id.*assign_ids"):
        anchor_of(instance, anchor)


def test_an_anchor_that_no_database_could_store():
    with pytest.raises(InvalidDocumentId):
        anchor_of(Order(name="\x00"), "name")


def note_with(
    anchor: str, *, name: str = "Note", **fields: models.Field
) -> type[models.Model]:
    """Make a model with an anchor, and no table."""
    meta = type("Meta", (), {"app_label": "records"})
    key = HiLoField(primary_key=True, anchor=anchor)
    named = {"__module__": __name__, "Meta": meta, "id": key}
    with isolate_apps("tests.apps.records"):
        return type(name, (models.Model,), {**named, **fields})


def by_default(value: str) -> models.Field:
    return models.CharField(max_length=20, db_default=Value(value))


def generated() -> models.Field:
    text = models.CharField(max_length=20)
    return models.GeneratedField(
        expression=Lower("code"), output_field=text, db_persist=True
    )


class TestValuesThatOnlyTheDatabaseKnows:
    """An error that names the path, and never the text of an object in a key."""

    @pytest.mark.parametrize(
        ("model", "given"),
        [
            (note_with("code", code=by_default("K")), {}),
            (note_with("code", code=by_default("K")), {"code": Lower(Value("K"))}),
            (note_with("low", code=by_default("K"), low=generated()), {"code": "K"}),
        ],
    )
    def test_of_the_object_itself(self, model, given):
        note = model(**given)
        with pytest.raises(HiLoError, match=r"anchor '(code|low)' is a .*Set a value"):
            note.save()
        assert note.pk is None

    @pytest.mark.parametrize("name", ["code", "low"])
    @pytest.mark.parametrize("key", [None, "notes/1-A"])
    def test_of_an_unsaved_parent(self, name, key):
        parents = note_with("code", name="Book", code=by_default("K"), low=generated())
        parent = models.ForeignKey(parents, models.CASCADE, related_name="+")
        note = note_with(f"parent__{name}", parent=parent)
        with pytest.raises(HiLoError, match=f"anchor 'parent__{name}' is a"):
            anchor_of(note(parent=parents(id=key)), f"parent__{name}")

    @pytest.mark.parametrize("anchor", ["order", "order__name"])
    def test_of_the_key_of_a_relation(self, anchor):
        Order.objects.create(name="not this one")
        order = models.ForeignKey(Order, models.CASCADE, related_name="+")
        note = note_with(anchor, order=order)
        with pytest.raises(HiLoError, match=f"anchor '{anchor}' is a F"):
            note(order_id=F("id")).save()

    def test_of_the_key_of_an_object(self):
        order = Order(id=Value("orders/7-A"), name="x")
        for anchor in ("order", lambda invoice: invoice.order):
            with pytest.raises(HiLoError, match="is a Value, whose value only"):
                anchor_of(Invoice(order=order), anchor)
        assert anchor_of(Invoice(order=order), "order__name") == "x"
        with pytest.raises(HiLoError, match="no id to anchor to"):
            Invoice.objects.next_id(anchor=order)

    def test_a_value_that_python_knows_is_an_anchor(self):
        note = note_with("code", code=by_default("K"))
        assert anchor_of(note(code="L"), "code") == "L"


class TestAnchoredTo:
    def test_an_object_an_id_and_a_text(self):
        first, second = Order.objects.create(), Order.objects.create()
        mine = [Invoice.objects.create(order=first) for _ in range(2)]
        Invoice.objects.create(order=second)

        for anchor in (first, first.pk):
            assert set(Invoice.objects.anchored_to(anchor)) == set(mine)
        Order.objects.create(id="orders/9-A$any text$ at all/")
        (found,) = Order.objects.anchored_to("any text$ at all/")
        assert found.pk.startswith("orders/9-A")
        assert not Invoice.objects.anchored_to("orders/404-A")

    def test_it_is_one_query_that_goes_on(self):
        order = Order.objects.create()
        invoices = [Invoice.objects.create(order=order) for _ in range(12)]
        with CaptureQueriesContext(connection) as queries:
            found = list(Invoice.objects.anchored_to(order).order_by("-id__number")[:2])
        assert found == invoices[:-3:-1]
        assert len(queries) == 1
        assert order.invoice_set.anchored_to(order).count() == 12
        assert Invoice.objects.exclude(pk=found[0].pk).anchored_to(order).count() == 11

    def test_what_is_anchored_in_turn_is_not_listed(self):
        order = Order.objects.create()
        invoice = Invoice.objects.create(order=order)
        chained = Invoice.objects.create(id=f"invoices/50-A${invoice.pk}", order=order)
        assert list(Invoice.objects.anchored_to(order)) == [invoice]
        assert list(Invoice.objects.anchored_to(invoice)) == [chained]
        assert bucket_of(chained.pk) == bucket_of(order.pk)

    def test_ids_that_conventions_made(self):
        Order.objects.create(id="Sales 2026$orders/1-A")
        assert Order.objects.anchored_to("orders/1-A").get().pk.startswith("Sales")

    def test_an_object_without_an_id(self):
        with pytest.raises(HiLoError, match=r"no id to anchor to yet \(see assign_ids"):
            Invoice.objects.anchored_to(Order())
        with pytest.raises(HiLoError, match="no id to anchor to"):
            Invoice.objects.next_id(anchor=Order())

    @pytest.mark.parametrize("anchor", [None, "", 7])
    def test_what_is_no_anchor(self, anchor):
        with pytest.raises(
            HiLoError, match=r"anchor .* must be a string|is not an anchor"
        ):
            Invoice.objects.anchored_to(anchor)

    def test_a_model_without_ids_of_ours(self):
        with pytest.raises(LookupError):
            HiLoQuerySet(HiLoDocument).anchored_to("x")


class TestGraphs:
    def test_ids_of_a_whole_graph_before_any_insert(self):
        order = Order()
        invoices = [Invoice(order=order) for _ in range(3)]
        Order.objects.assign_ids([order])
        Invoice.objects.assign_ids(invoices)

        assert {anchor_in(each.pk) for each in invoices} == {order.pk}
        assert not Order.objects.exists()
        order.save()
        with CaptureQueriesContext(connection) as queries:
            Invoice.objects.bulk_create(invoices)
        assert sum("INSERT" in query["sql"] for query in queries) == 1
        assert Invoice.objects.anchored_to(order).count() == 3

    def test_a_missing_anchor_stops_all_before_anything_is_written(self):
        order = Order.objects.create()
        before = next_number(Invoice)
        with pytest.raises(HiLoError, match=r"cannot get an id.*assign_ids"):
            Invoice.objects.bulk_create([Invoice(order=order), Invoice(order=Order())])
        assert not Invoice.objects.exists()
        assert next_number(Invoice) == before + 1

    def test_a_later_change_of_the_relation_never_changes_the_id(self):
        first, second = Order.objects.create(), Order.objects.create()
        invoice = Invoice.objects.create(order=first)
        invoice.order = second
        invoice.save()
        assert Invoice.objects.get().pk == invoice.pk
        assert list(Invoice.objects.anchored_to(first)) == [invoice]
