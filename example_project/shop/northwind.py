"""Northwind's CSV files: read and checked as a whole before anything is done with them.

Nothing in here knows of Django.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Generic, TypeVar

from example_project.shop.csvfile import Row, WrongFileError, WrongValueError, read_rows

SHOWN_ERRORS = 20


class WrongFilesError(Exception):
    """What is wrong with the files, one message for each row."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        shown = errors[:SHOWN_ERRORS]
        if len(errors) > len(shown):
            shown.append(f"... and {len(errors) - len(shown)} more errors.")
        super().__init__("\n".join(shown))


@dataclass(frozen=True, slots=True)
class CustomerRow:
    code: str
    name: str
    contact: str
    city: str
    country: str


@dataclass(frozen=True, slots=True)
class ProductRow:
    number: int
    name: str
    quantity_per_unit: str
    unit_price: Decimal
    discontinued: bool


@dataclass(frozen=True, slots=True)
class OrderRow:
    number: int
    customer: str
    ordered_on: date
    shipped_on: date | None
    freight: Decimal


@dataclass(frozen=True, slots=True)
class LineRow:
    order: int
    product: int
    unit_price: Decimal
    quantity: int
    discount: Decimal


@dataclass(frozen=True, slots=True)
class Northwind:
    """All rows; each one's references are met."""

    customers: list[CustomerRow]
    products: list[ProductRow]
    orders: list[OrderRow]
    lines: list[LineRow]


def read(folder: Path) -> Northwind:
    """Read and check the four files of a folder; raises `WrongFilesError`."""
    errors: list[str] = []
    customers: Keys[str] = Keys("customer", "customers.csv")
    products: Keys[int] = Keys("product", "products.csv")
    orders: Keys[int] = Keys("order", "orders.csv")
    lines: Keys[tuple[int, int]] = Keys("order and product", "order-details.csv")

    def customer(row: Row) -> CustomerRow:
        return CustomerRow(
            customers.add(row.code("customerID"), row.line),
            row.required_text("companyName", 100),
            row.text("contactName", 100),
            row.text("city", 60),
            row.text("country", 60),
        )

    def product(row: Row) -> ProductRow:
        return ProductRow(
            products.add(row.whole("productID"), row.line),
            row.required_text("productName", 100),
            row.text("quantityPerUnit", 60),
            row.decimal("unitPrice"),
            row.flag("discontinued"),
        )

    def order(row: Row) -> OrderRow:
        return OrderRow(
            orders.add(row.whole("orderID"), row.line),
            customers.expect(row.code("customerID")),
            row.required_day("orderDate"),
            row.day("shippedDate"),
            row.decimal("freight"),
        )

    def line(row: Row) -> LineRow:
        key = row.whole("orderID"), row.whole("productID")
        lines.add(key, row.line)
        return LineRow(
            orders.expect(key[0]),
            products.expect(key[1]),
            row.decimal("unitPrice"),
            row.whole("quantity"),
            row.decimal("discount", most=Decimal(1)),
        )

    northwind = Northwind(
        _read(folder, customers, _CUSTOMER_COLUMNS, customer, errors),
        _read(folder, products, _PRODUCT_COLUMNS, product, errors),
        _read(folder, orders, _ORDER_COLUMNS, order, errors),
        _read(folder, lines, _LINE_COLUMNS, line, errors),
    )
    if errors:
        raise WrongFilesError(errors)
    return northwind


_CUSTOMER_COLUMNS = ["customerID", "companyName", "contactName", "city", "country"]
_PRODUCT_COLUMNS = [
    "productID",
    "productName",
    "quantityPerUnit",
    "unitPrice",
    "discontinued",
]
_ORDER_COLUMNS = ["orderID", "customerID", "orderDate", "shippedDate", "freight"]
_LINE_COLUMNS = ["orderID", "productID", "unitPrice", "quantity", "discount"]

Key = TypeVar("Key")
Parsed = TypeVar("Parsed")


class Keys(Generic[Key]):
    """The keys of one file, to find those that are there twice or not at all."""

    def __init__(self, noun: str, file: str) -> None:
        self.noun = noun
        self.file = file
        # False once the key of a row could not be read: it may be the one expected.
        self.complete = True
        self.last_line = 0
        self._lines: dict[Key, int] = {}

    def add(self, key: Key, line: int) -> Key:
        """Note a key; raises `WrongValueError` for one that was there before."""
        self.last_line = line
        first = self._lines.setdefault(key, line)
        if first != line:
            raise WrongValueError(f"{self.noun} {key!r} is in line {first} already")
        return key

    def expect(self, key: Key) -> Key:
        """Return a key that is there, else raise `WrongValueError`."""
        if self.complete and key not in self._lines:
            raise WrongValueError(f"{self.noun} {key!r} is not in {self.file}")
        return key


def _read(
    folder: Path,
    keys: Keys[Key],
    columns: list[str],
    parse: Callable[[Row], Parsed],
    errors: list[str],
) -> list[Parsed]:
    """Return the rows of a file, and add what is wrong to the errors."""
    parsed = []
    before = len(errors)
    try:
        for line, row in read_rows(folder / keys.file, columns):
            try:
                if isinstance(row, WrongValueError):
                    raise row
                parsed.append(parse(row))
            except WrongValueError as error:
                keys.complete = keys.complete and keys.last_line == line
                errors.append(f"{keys.file}, line {line}: {error}")
    except WrongFileError as error:
        keys.complete = False
        place = f", line {error.line}" if error.line else ""
        errors.append(f"{keys.file}{place}: {error}")
    if not parsed and len(errors) == before:
        keys.complete = False
        errors.append(f"{keys.file}: the file holds no row under its header")
    return parsed
