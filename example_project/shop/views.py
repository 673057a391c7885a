from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from django_hilo.sharding import bucket_of
from example_project.shop.counters import counters, gapless_counters
from example_project.shop.models import (
    Announcement,
    Customer,
    Invoice,
    Order,
    OrderLine,
    Product,
)

ROWS_PER_PAGE = 25


@require_safe
def front(request: HttpRequest) -> HttpResponse:
    """Show what the counters are doing and how many rows there are."""
    models = (Customer, Product, Order, OrderLine, Invoice)
    context = {
        "announcements": Announcement.objects.all()[:3],
        "counters": counters(),
        "gapless_counters": list(gapless_counters()),
        "counts": [
            (model._meta.verbose_name_plural, model._default_manager.count())
            for model in models
        ],
    }
    return render(request, "shop/front.html", context)


@require_safe
def readme(request: HttpRequest) -> FileResponse:
    """Show the project's README as it is."""
    file = (settings.PROJECT / "README.md").open("rb")
    return FileResponse(file, content_type="text/plain; charset=utf-8")


@require_safe
def customers(request: HttpRequest) -> HttpResponse:
    """List the customers with the number of their orders."""
    rows = Customer.objects.annotate(order_count=Count("orders"))
    # Django drops Meta.ordering where rows are grouped.
    return _list(request, "shop/customers.html", rows.order_by("code"))


@require_safe
def products(request: HttpRequest) -> HttpResponse:
    """List the products."""
    return _list(request, "shop/products.html", Product.objects.all())


@require_safe
def orders(request: HttpRequest) -> HttpResponse:
    """List the orders with the number of their lines."""
    rows = Order.objects.select_related("customer").annotate(line_count=Count("lines"))
    return _list(request, "shop/orders.html", rows.order_by("number"))


@require_safe
def order(request: HttpRequest, pk: str) -> HttpResponse:
    """Show an order with its lines and invoices."""
    rows = Order.objects.select_related("customer")
    found = get_object_or_404(rows, pk=pk)
    lines = list(found.lines.select_related("product").order_by("id__number"))
    context = {
        "order": found,
        "lines": lines,
        "total": sum((line.total for line in lines), found.freight),
        "invoices": found.invoices.all(),
        "bucket": bucket_of(found.pk),
    }
    return render(request, "shop/order.html", context)


@require_safe
def invoice(request: HttpRequest, pk: str) -> HttpResponse:
    """Show an invoice."""
    rows = Invoice.objects.select_related("order__customer")
    found = get_object_or_404(rows, pk=pk)
    return render(request, "shop/invoice.html", {"invoice": found})


def _list(request: HttpRequest, template: str, rows: QuerySet[Any]) -> HttpResponse:
    page: Page[Any] = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, template, {"page": page})
