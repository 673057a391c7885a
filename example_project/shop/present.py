from __future__ import annotations

from django.db import connections, models

from example_project.shop.graph import Graph
from example_project.shop.loading import Figures
from example_project.shop.models import Customer, Invoice, Order, OrderLine, Product
from example_project.shop.northwind import Northwind


def has_tables(using: str) -> bool:
    """Return whether the shop was migrated on a database."""
    tables = connections[using].introspection.table_names()
    return Customer._meta.db_table in tables


def rows_present(northwind: Northwind, using: str) -> list[str]:
    """Name the customers, products and orders that a database has already."""
    keys: list[tuple[type[models.Model], str, list[str] | list[int]]] = [
        (Customer, "code", [row.code for row in northwind.customers]),
        (Product, "number", [row.number for row in northwind.products]),
        (Order, "number", [row.number for row in northwind.orders]),
    ]
    return [
        f"{model._meta.verbose_name} {key}"
        for model, field, wanted in keys
        # in_bulk() splits what is too long for one statement.
        for key in model._default_manager.using(using).in_bulk(wanted, field_name=field)
    ]


def missing_invoices() -> Graph:
    """Build the invoices of shipped orders in the default database that have none."""
    lines = OrderLine.objects.filter(order__invoices=None).select_related("order")
    found = Graph(orders=list(Order.objects.filter(invoices=None)), lines=list(lines))
    found.add_invoices()
    return Graph(invoices=found.invoices)


def figures_present() -> list[Figures]:
    """Return the figures of what the default database holds, which cost nothing."""
    found = []
    for model in (Customer, Product, Order, OrderLine, Invoice):
        rows = model._default_manager.order_by("id__number")
        first, last = rows.first(), rows.last()
        if first is not None and last is not None:
            found.append(Figures(model, rows.count(), str(first.pk), str(last.pk)))
    return found
