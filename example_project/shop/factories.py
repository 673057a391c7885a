# factory_boy has types for what its factories make, not for their declarations.
# mypy: allow-untyped-calls
from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Max
from factory.declarations import (
    Iterator,
    LazyAttribute,
    LazyFunction,
    Sequence,
    SubFactory,
)
from factory.django import DjangoModelFactory
from factory.faker import Faker

from example_project.shop.graph import Graph
from example_project.shop.models import Customer, Order, OrderLine, Product

CUSTOMERS = 20
PRODUCTS = 30
ORDERS = 200
LINES = (1, 5)

# Numbers of made-up rows start over those of Northwind, so that both fit one database.
FIRST_CUSTOMER = 1
FIRST_PRODUCT = 1001
FIRST_ORDER = 100001


class CustomerFactory(DjangoModelFactory[Customer]):
    class Meta:
        model = Customer

    # Northwind's codes are letters only.
    code = Sequence(lambda n: f"DEMO{n:05}")
    name = Faker("company")
    contact = Faker("name")
    city = Faker("city")
    country = Faker("country")


class ProductFactory(DjangoModelFactory[Product]):
    class Meta:
        model = Product

    number = Sequence(int)
    name = Faker("sentence", nb_words=3)
    quantity_per_unit = Iterator(["10 boxes", "24 bottles", "500 g", "1 kg"])
    unit_price = LazyFunction(lambda: Decimal(random.randint(100, 9999)) / 100)
    discontinued = LazyFunction(lambda: random.random() < 0.1)


class OrderFactory(DjangoModelFactory[Order]):
    class Meta:
        model = Order

    number = Sequence(int)
    customer = SubFactory(CustomerFactory)
    ordered_on = Faker("date_between", start_date="-1y", end_date="-30d")
    freight = LazyFunction(lambda: Decimal(random.randint(500, 9000)) / 100)

    shipped_on = LazyAttribute(lambda order: _shipped_on(order.ordered_on))


class OrderLineFactory(DjangoModelFactory[OrderLine]):
    class Meta:
        model = OrderLine

    order = SubFactory(OrderFactory)
    product = SubFactory(ProductFactory)
    unit_price = LazyAttribute(lambda line: line.product.unit_price)
    quantity = LazyFunction(lambda: random.randint(1, 40))
    discount = Iterator([Decimal(0), Decimal(0), Decimal("0.05"), Decimal("0.2")])


def made_up_graph() -> Graph:
    """Return unsaved customers, products and orders with lines and invoices."""
    CustomerFactory.reset_sequence(_next_customer(), force=True)
    ProductFactory.reset_sequence(_next_number(Product, FIRST_PRODUCT), force=True)
    OrderFactory.reset_sequence(_next_number(Order, FIRST_ORDER), force=True)
    customers = CustomerFactory.build_batch(CUSTOMERS)
    products = ProductFactory.build_batch(PRODUCTS)
    orders = [
        OrderFactory.build(customer=random.choice(customers)) for _ in range(ORDERS)
    ]
    lines = [
        OrderLineFactory.build(order=order, product=product)
        for order in orders
        for product in random.sample(products, random.randint(*LINES))
    ]
    graph = Graph(customers, products, orders, lines)
    graph.add_invoices()
    return graph


def _shipped_on(ordered_on: date) -> date | None:
    # About a third of the orders is not shipped yet, and so has no invoice.
    if random.random() < 0.3:
        return None
    return ordered_on + timedelta(days=random.randint(1, 20))


def _next_customer() -> int:
    codes = Customer.objects.filter(code__startswith="DEMO0")
    last = codes.order_by("code").values_list("code", flat=True).last()
    return int(last.removeprefix("DEMO")) + 1 if last else FIRST_CUSTOMER


def _next_number(model: type[Product] | type[Order], first: int) -> int:
    last = model._default_manager.aggregate(last=Max("number"))["last"] or 0
    return max(last + 1, first)
