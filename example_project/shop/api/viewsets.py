from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import ProtectedError
from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from example_project.shop.api.serializers import (
    CustomerSerializer,
    InvoiceSerializer,
    OrderLineSerializer,
    OrderSerializer,
    ProductSerializer,
)
from example_project.shop.models import Customer, Invoice, Order, Product


class InUse(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_code = "in_use"


class ShopViewSet(viewsets.ModelViewSet[Any]):
    """Objects whose keys are ids such as ``orders/33-A``."""

    # DRF's own converter ends at a slash.
    lookup_value_converter = "hilo"
    ordering = ["id__number"]

    def perform_destroy(self, instance: models.Model) -> None:
        """Delete an object that no other refers to."""
        try:
            instance.delete()
        except ProtectedError as error:
            used_by = ", ".join(
                sorted(str(other.pk) for other in error.protected_objects)
            )
            raise InUse(f"{instance.pk} is in use by {used_by}.") from error


class CustomerViewSet(ShopViewSet):
    """Customers."""

    queryset = Customer.objects.all()
    serializer_class = CustomerSerializer
    search_fields = ["=id", "code", "name", "contact"]
    ordering_fields = ["id__number", "code", "name"]


class ProductViewSet(ShopViewSet):
    """Products."""

    queryset = Product.objects.all()
    serializer_class = ProductSerializer
    search_fields = ["=id", "name"]
    ordering_fields = ["id__number", "number", "name", "unit_price"]


class OrderViewSet(ShopViewSet):
    """Orders."""

    queryset = Order.objects.all()
    serializer_class = OrderSerializer
    search_fields = ["=id", "customer__code", "customer__name"]
    ordering_fields = ["id__number", "number", "ordered_on"]

    @extend_schema(responses=OrderLineSerializer(many=True), filters=False)
    @action(detail=True, pagination_class=None)
    def lines(self, request: Request, pk: str, format: str | None = None) -> Response:
        """List the lines of an order, by the numbers of their ids."""
        lines = self.get_object().lines.order_by("id__number")
        return Response(OrderLineSerializer(lines, many=True).data)


class InvoiceViewSet(ShopViewSet):
    """Invoices, numbered without gaps."""

    queryset = Invoice.objects.all()
    serializer_class = InvoiceSerializer
    search_fields = ["=id", "=order__id"]
    ordering_fields = ["id__number", "order__id__number", "issued_on", "total"]
