from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.db import models

from example_project.shop.models import Customer, Invoice, Order, OrderLine, Product
from example_project.shop.northwind import Northwind


@dataclass
class Graph:
    """Unsaved objects that refer to each other."""

    customers: list[Customer] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    lines: list[OrderLine] = field(default_factory=list)
    invoices: list[Invoice] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(objects) for _, objects in self.by_model())

    def by_model(self) -> list[tuple[type[models.Model], Sequence[models.Model]]]:
        """Return the models that have objects, each after those it refers to."""
        groups: list[tuple[type[models.Model], Sequence[models.Model]]] = [
            (Customer, self.customers),
            (Product, self.products),
            (Order, self.orders),
            (OrderLine, self.lines),
            (Invoice, self.invoices),
        ]
        return [(model, objects) for model, objects in groups if objects]

    def add_invoices(self) -> None:
        """Add an invoice for each order that was shipped, in the order of the days."""
        totals: dict[int, Decimal] = defaultdict(Decimal)
        for line in self.lines:
            totals[line.order.number] += line.total
        invoices = [
            Invoice(
                order=order,
                issued_on=order.shipped_on,
                total=totals[order.number] + order.freight,
            )
            for order in self.orders
            if order.shipped_on is not None
        ]
        self.invoices += sorted(invoices, key=lambda invoice: invoice.issued_on)


def graph_of(northwind: Northwind) -> Graph:
    """Build the objects of Northwind."""
    customers = {
        row.code: Customer(
            code=row.code,
            name=row.name,
            contact=row.contact,
            city=row.city,
            country=row.country,
        )
        for row in northwind.customers
    }
    products = {
        row.number: Product(
            number=row.number,
            name=row.name,
            quantity_per_unit=row.quantity_per_unit,
            unit_price=row.unit_price,
            discontinued=row.discontinued,
        )
        for row in northwind.products
    }
    orders = {
        row.number: Order(
            number=row.number,
            customer=customers[row.customer],
            ordered_on=row.ordered_on,
            shipped_on=row.shipped_on,
            freight=row.freight,
        )
        for row in northwind.orders
    }
    lines = [
        OrderLine(
            order=orders[row.order],
            product=products[row.product],
            unit_price=row.unit_price,
            quantity=row.quantity,
            discount=row.discount,
        )
        for row in northwind.lines
    ]
    return Graph(
        list(customers.values()), list(products.values()), list(orders.values()), lines
    )
