from django.contrib import admin

from tests.apps.records.models import Editable, Order, OrderLine


class OrderLineInline(admin.TabularInline):
    model = OrderLine
    extra = 1


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    inlines = [OrderLineInline]


admin.site.register(Editable)
