from __future__ import annotations

from rest_framework import serializers

from example_project.shop.models import Customer, Invoice, Order, OrderLine, Product

# The ids are read-only: HiLoField is not editable, save() gives them.


class CustomerSerializer(serializers.ModelSerializer[Customer]):
    class Meta:
        model = Customer
        fields = ["id", "code", "name", "contact", "city", "country"]


class ProductSerializer(serializers.ModelSerializer[Product]):
    class Meta:
        model = Product
        fields = [
            *("id", "number", "name", "quantity_per_unit", "unit_price"),
            "discontinued",
        ]


class OrderSerializer(serializers.ModelSerializer[Order]):
    class Meta:
        model = Order
        fields = ["id", "number", "customer", "ordered_on", "shipped_on", "freight"]


class OrderLineSerializer(serializers.ModelSerializer[OrderLine]):
    class Meta:
        model = OrderLine
        fields = ["id", "product", "unit_price", "quantity", "discount", "total"]

    total = serializers.DecimalField(max_digits=14, decimal_places=2, read_only=True)


class InvoiceSerializer(serializers.ModelSerializer[Invoice]):
    class Meta:
        model = Invoice
        fields = ["id", "number", "order", "issued_on", "total"]
