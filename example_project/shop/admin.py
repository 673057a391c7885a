# Django's admin classes take no type arguments at run time.
# mypy: allow-any-generics
from __future__ import annotations

from django.contrib import admin
from django.db import models
from django.utils.translation import gettext_lazy as _

from example_project.shop.models import (
    Announcement,
    Customer,
    Invoice,
    Order,
    OrderLine,
    Product,
)


class ByNumber(admin.ModelAdmin):
    """A list with a column of ids that is ordered by their numbers, newest first."""

    ordering = ("-id__number",)

    class Media:
        css = {"all": ["shop/admin.css"]}

    @admin.display(description=_("id"), ordering="id__number")
    def numbered_id(self, obj: models.Model) -> str:
        """Return the id: a column of the field itself would be ordered as text."""
        return str(obj.pk)


@admin.register(Customer)
class CustomerAdmin(ByNumber):
    list_display = ("code", "name", "city", "country", "numbered_id")
    list_filter = ("country",)
    search_fields = ("code", "name", "contact", "id")


@admin.register(Product)
class ProductAdmin(ByNumber):
    list_display = ("number", "name", "unit_price", "discontinued", "numbered_id")
    list_filter = ("discontinued",)
    search_fields = ("=number", "name", "id")


class OrderLineInline(admin.TabularInline):
    model = OrderLine
    autocomplete_fields = ("product",)
    extra = 0


@admin.register(Order)
class OrderAdmin(ByNumber):
    list_display = ("number", "customer", "ordered_on", "shipped_on", "numbered_id")
    list_select_related = ("customer",)
    date_hierarchy = "ordered_on"
    autocomplete_fields = ("customer",)
    search_fields = ("=number", "customer__code", "customer__name", "id")
    inlines = (OrderLineInline,)

    def view_on_site(self, obj: Order) -> str:
        return obj.get_absolute_url()


@admin.register(OrderLine)
class OrderLineAdmin(ByNumber):
    list_display = (
        *("numbered_id", "order", "product", "unit_price", "quantity"),
        "discount",
    )
    list_select_related = ("order", "product")
    autocomplete_fields = ("product",)
    raw_id_fields = ("order",)
    search_fields = ("=order__number", "product__name", "id")


@admin.register(Invoice)
class InvoiceAdmin(ByNumber):
    list_display = ("numbered_id", "number", "order", "issued_on", "total")
    list_select_related = ("order",)
    date_hierarchy = "issued_on"
    autocomplete_fields = ("order",)
    readonly_fields = ("number",)
    search_fields = ("=order__number", "id", "number")

    def view_on_site(self, obj: Invoice) -> str:
        return obj.get_absolute_url()


@admin.register(Announcement)
class AnnouncementAdmin(admin.ModelAdmin):
    list_display = ("pk", "text", "published_on")
    date_hierarchy = "published_on"
    search_fields = ("text",)
