# Django's admin classes take no type arguments at run time.
# mypy: allow-any-generics
from __future__ import annotations

from django.contrib import admin

from example_project.shop.models import Customer, Invoice, Order, OrderLine, Product


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ("code", "name", "city", "country", "id")
    list_filter = ("country",)
    search_fields = ("code", "name", "contact", "id")


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ("number", "name", "unit_price", "discontinued", "id")
    list_filter = ("discontinued",)
    search_fields = ("=number", "name", "id")


class OrderLineInline(admin.TabularInline):
    model = OrderLine
    autocomplete_fields = ("product",)
    extra = 0


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("number", "customer", "ordered_on", "shipped_on", "id")
    list_select_related = ("customer",)
    date_hierarchy = "ordered_on"
    autocomplete_fields = ("customer",)
    search_fields = ("=number", "customer__code", "customer__name", "id")
    inlines = (OrderLineInline,)


@admin.register(OrderLine)
class OrderLineAdmin(admin.ModelAdmin):
    list_display = ("id", "order", "product", "unit_price", "quantity", "discount")
    list_select_related = ("order", "product")
    autocomplete_fields = ("order", "product")
    search_fields = ("=order__number", "product__name", "id")


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    list_display = ("id", "order", "issued_on", "total")
    list_select_related = ("order",)
    date_hierarchy = "issued_on"
    autocomplete_fields = ("order",)
    search_fields = ("=order__number", "id")
