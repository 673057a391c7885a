"""The check W116: lists that sort by a part of an id which no index has."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.checks import Tags, run_checks
from django.db import connection, models
from django.db.models import F, Q
from django.test.utils import isolate_apps

from django_hilo.checks.orderings import check_orderings
from django_hilo.fields import BucketField, GaplessIdField, HiLoField
from django_hilo.fields.lookups import Number
from tests.apps.numbers.models import Item
from tests.apps.records.models import Invoice, Order, OrderLine, Restaurant
from tests.support.databases import CHOSEN

NUMBER = models.Index(F("id__number"), name="by_number")
OF_ORDER = models.Index(F("order__id__number"), name="by_number_of_order")


def stored(**options: Any) -> models.GeneratedField:
    return models.GeneratedField(
        expression=F("id__number"),
        output_field=models.BigIntegerField(),
        db_persist=False,
        **options,
    )


def thing(ordering: Any, *indexes: models.Index, **fields: Any) -> Any:
    """Make a model with an ordering."""
    given = {"ordering": [ordering], "indexes": list(indexes)}
    fields = {
        "id": HiLoField(primary_key=True),
        "name": models.CharField(max_length=9),
        "order": models.ForeignKey(Order, models.CASCADE, related_name="+"),
        "invoice": models.ForeignKey(Invoice, models.CASCADE, related_name="+"),
        "item": models.ForeignKey(Item, models.CASCADE, related_name="+"),
        **fields,
    }
    meta = type("Meta", (), {"app_label": "records", **given})
    with isolate_apps("tests.apps.records"):
        body = {"__module__": __name__, "Meta": meta, **fields}
        return type("Thing", (models.Model,), body)


@pytest.fixture
def warned(monkeypatch):
    """Return the warnings of these models alone."""

    def of(*given: Any) -> list[Any]:
        monkeypatch.setattr(apps, "get_models", lambda **options: list(given))
        found = check_orderings()
        assert {each.id for each in found} <= {"django_hilo.W116"}
        return found

    return of


@pytest.mark.parametrize(
    ("ordering", "indexes", "fields"),
    [
        ("id", [], {}),
        ("?", [], {}),
        ("name", [], {}),
        # What another check refuses.
        ("nothing__number", [], {}),
        (5, [], {}),
        # Of another table, whose indexes do not sort this one.
        ("invoice__order__id__number", [], {}),
        ("id__number", [NUMBER], {}),
        ("-id__number", [NUMBER], {}),
        ("pk__number", [NUMBER], {}),
        (F("id__number").desc(nulls_last=True), [NUMBER], {}),
        (Number("id"), [NUMBER], {}),
        ("id__number", [models.Index(F("pk__number").desc(), name="x")], {}),
        ("order__id__number", [OF_ORDER], {}),
        ("id__number", [], {"number": stored(db_index=True)}),
        ("id__number", [models.Index("number", name="x")], {"number": stored()}),
        ("id__bucket", [], {"bucket": BucketField(db_index=True)}),
    ],
)
def test_orderings_that_need_no_index_or_have_one(warned, ordering, indexes, fields):
    assert warned(thing(ordering, *indexes, **fields)) == []


PARTIAL = models.Index(F("id__number"), name="partial", condition=Q(name="x"))
WRONG = models.Index(F("nothing"), name="wrong")


@pytest.mark.parametrize(
    ("ordering", "path", "indexes", "fields"),
    [
        ("id__number", "id__number", [], {}),
        (F("id__number").desc(), "id__number", [], {}),
        (Number("id"), "id__number", [], {}),
        ("id__number", "id__number", [OF_ORDER, PARTIAL, WRONG], {}),
        ("id__number", "id__number", [], {"id": GaplessIdField(primary_key=True)}),
        ("id__anchor", "id__anchor", [NUMBER], {}),
        ("order__id__number", "order__id__number", [NUMBER], {}),
        ("id__number", "id__number", [], {"number": stored()}),
        ("id__bucket", "id__bucket", [], {"bucket": BucketField()}),
        ("id__bucket", "id__bucket", [], {}),
    ],
)
def test_orderings_without_an_index(warned, ordering, path, indexes, fields):
    model = thing(ordering, *indexes, **fields)
    (warning,) = warned(model)
    assert warning.obj is model
    assert warning.msg.startswith(
        f"Thing.Meta sorts by {path}, which no index of records.Thing has"
    )
    if "bucket" in path and not fields:  # a BucketField
        assert "BucketField(db_index=True)" in warning.hint
    else:
        assert warned(thing(ordering, index_of(warning), **fields)) == []


def index_of(warning: Any) -> models.Index:
    """Return the index that the hint tells to add."""
    code, _ = warning.hint.removeprefix("Add ").split(" to Meta.indexes")
    return eval(code.replace("...", "advised"), {"models": models, "F": F})


def test_proxies_and_children_of_tables(warned, monkeypatch):
    with isolate_apps("tests.apps.records"):

        class Parent(models.Model):
            id = HiLoField(primary_key=True)

            class Meta:
                app_label = "records"
                ordering = ["id__number"]
                indexes = [NUMBER]

        class Child(Parent):
            class Meta:
                app_label = "records"

        class Alike(Child):
            class Meta:
                app_label = "records"
                proxy = True

        class Other(Child):
            class Meta:
                app_label = "records"
                proxy = True
                ordering = ["-id__number"]

    found = warned(Parent, Child, Alike, Other)
    assert [each.obj for each in found] == [Child, Other]
    for each in found:
        assert "parent_ptr__id__number, which no index of records.Child" in each.msg


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(CHOSEN == "mariadb", reason="It has no indexes of expressions.")
def test_the_index_of_the_hint_can_be_made(warned, monkeypatch):
    for model, ordering in (
        (Order, "id__number"),
        (OrderLine, "order__id__number"),
        (Restaurant, "id__number"),
    ):
        monkeypatch.setattr(model._meta, "ordering", [ordering])
        (warning,) = warned(model)
        index = index_of(warning)
        with connection.schema_editor() as editor:
            editor.add_index(model, index)
        with connection.schema_editor() as editor:
            editor.remove_index(model, index)
        monkeypatch.setattr(model._meta, "indexes", [index])
        assert warned(model) == []


class TestTheAdmin:
    @pytest.fixture
    def warned(self, monkeypatch):
        def of(options: type[admin.ModelAdmin]) -> list[Any]:
            site = admin.AdminSite()
            monkeypatch.setattr("django.contrib.admin.sites.all_sites", {site})
            site.register(Order, options)
            return run_checks(tags=[Tags.admin])

        return of

    def test_the_ordering_and_the_columns(self, warned, monkeypatch):
        @admin.display(ordering="id__number")
        def of_a_module(order):
            return order.pk

        class Ordered(admin.ModelAdmin):
            ordering = ["-id__number"]

        class Column(admin.ModelAdmin):
            list_display = ["__str__", "name", "numbered"]

            @admin.display(ordering="-id__number")
            def numbered(self, order):
                return order.pk

        class Function(admin.ModelAdmin):
            list_display = [of_a_module]

        class Property(admin.ModelAdmin):
            list_display = ["numbered"]

        monkeypatch.setattr(Order, "numbered", property(of_a_module), raising=False)

        class Both(Column):
            ordering = [F("id__number").asc()]

        for options in (Ordered, Column, Function, Property, Both):
            (warning,) = warned(options)
            assert (warning.id, warning.obj) == ("django_hilo.W116", options)
            assert warning.msg.startswith(
                f"{options.__name__} sorts by id__number, which no index of "
                f"records.Order has"
            )
        monkeypatch.setattr(Order._meta, "indexes", [NUMBER])
        assert warned(Both) == []

    def test_what_is_not_sorted_by_a_part(self, warned):
        class Annotated(admin.ModelAdmin):
            list_display = ["counted", "id"]

            @admin.display(ordering="_lines")
            def counted(self, order):
                return order._lines

        class Fixed(admin.ModelAdmin):
            list_display = ["numbered"]
            sortable_by = ()

            @admin.display(ordering="id__number")
            def numbered(self, order):
                return order.pk

        assert warned(Annotated) == []
        assert warned(Fixed) == []
