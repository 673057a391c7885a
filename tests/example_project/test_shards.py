"""The example over two shards: both PostgreSQL's, or one of them MariaDB's.

A third database has the counters. Commands run as a user runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from django.db.utils import ConnectionHandler

from django_hilo.identifiers import parse
from django_hilo.sharding import bucket_of
from example_project.databases import from_url
from tests.example_project.test_example import (
    ENVIRONMENT,
    NORTHWIND,
    PROJECT,
    table_of,
    with_northwind,
)
from tests.support.databases import CHOSEN, URL_VARIABLES
from tests.support.patience import LONGEST

pytestmark = [
    pytest.mark.skipif(
        CHOSEN != "postgres",
        reason="The example brings its own databases: tested once, with PostgreSQL's.",
    ),
    with_northwind,
]
PAIRS = [("postgres", "postgres"), ("postgres", "mariadb")]
COPIED = ("Customer", "Product")
# Of the buckets: where the second shard starts.
HALF = 2**19
DUMP = """
import json
from example_project.shop.shards import shards
print(json.dumps([
    [database, model.__name__, row.pk, getattr(row, "order_id", None)]
    for database in shards()
    for model in (Customer, Product, Order, OrderLine, Invoice)
    for row in model.objects.using(database)
]))
"""


class Row(NamedTuple):
    database: str
    model: str
    id: str
    order: str | None


class Shop:
    """The commands of an example with the counters in one database, and two shards."""

    def __init__(self, home: str, shards: list[str]) -> None:
        self._environment = {
            **ENVIRONMENT,
            "EXAMPLE_DATABASE_URL": home,
            "EXAMPLE_SHARDS": ",".join(shards),
        }

    def run(self, *arguments: object, expect: int = 0) -> str:
        """Run a command, and return what it printed, to stderr if it is to fail."""
        done = self._run("manage.py", *map(str, arguments))
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stderr if expect else done.stdout

    def python(self, code: str) -> Any:
        """Run code in a process of its own, and return the JSON that it printed."""
        preamble = (
            "import json, django; django.setup()\n"
            "from example_project.shop.models import *\n"
        )
        done = self._run("-c", preamble + code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            cwd=PROJECT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    def rows(self) -> list[Row]:
        """Return all rows of the shop, on all shards."""
        return [Row(*row) for row in self.python(DUMP)]


class Imported(NamedTuple):
    """A shop that has Northwind, as it was right after the import."""

    shop: Shop
    printed: str
    rows: list[Row]
    counters: dict[str, int]


@contextmanager
def new_database(kind: str, name: str) -> Iterator[str]:
    """Make an empty database, give its URL, and drop it."""
    if not os.environ.get(URL_VARIABLES[kind]):
        sentence = f"{URL_VARIABLES[kind]} is not set"
        if os.environ.get("HILO_TEST_REQUIRE") == "1":
            pytest.fail(f"{sentence}, and HILO_TEST_REQUIRE=1")
        pytest.skip(sentence)
    server = urlsplit(os.environ[URL_VARIABLES[kind]])
    url = server._replace(path=f"/{name}").geturl()
    charset, force = {
        "mariadb": ("CHARACTER SET utf8mb4", ""),
        # PostgreSQL still counts the sessions of processes that have just ended.
        "postgres": ("", "WITH (FORCE)"),
    }[kind]
    execute(url, f"CREATE DATABASE {name} {charset}")
    try:
        yield url
    finally:
        execute(url, f"DROP DATABASE {name} {force}")


def execute(url: str, statement: str) -> None:
    """Run a statement on the server of a database, which need not be there."""
    connection: Any = ConnectionHandler({"default": from_url(url)})["default"]
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(scope="module")
def new_shop(django_db_blocker) -> Iterator[Callable[..., Shop]]:
    made = 0

    def new(*kinds: str) -> Shop:
        nonlocal made
        made += 1
        names = [f"hilo_example_{os.getpid()}_{made}{place}" for place in "hab"]
        home, *shards = [
            stack.enter_context(new_database(kind, name))
            for kind, name in zip(("postgres", *kinds), names, strict=True)
        ]
        shop = Shop(home, shards)
        # In one process, as a test has no use for three.
        shop.python(
            "from django.core.management import call_command\n"
            "for database in ('default', 'shard1', 'shard2'):\n"
            "    call_command('migrate', verbosity=0, database=database)\n"
            "print('null')"
        )
        return shop

    with django_db_blocker.unblock(), ExitStack() as stack:
        yield new


@pytest.fixture(scope="module", params=PAIRS, ids="+".join)
def imported(request: pytest.FixtureRequest, new_shop: Callable[..., Shop]) -> Imported:
    shop = new_shop(*request.param)
    printed = shop.run("import_northwind", NORTHWIND)
    counters = shop.python(
        "from django_hilo.models import HiLoDocument\n"
        "print(json.dumps(dict(HiLoDocument.objects.values_list('pk', 'max'))))"
    )
    return Imported(shop, printed, shop.rows(), counters)


@pytest.fixture
def empty(new_shop: Callable[..., Shop]) -> Shop:
    return new_shop("postgres", "mariadb")


def test_all_of_northwind_is_there_once(imported):
    spread = [row for row in imported.rows if row.model not in COPIED]

    assert len({row.id for row in spread}) == len(spread)
    assert Counter(row.model for row in spread) == {
        "Order": 830,
        "OrderLine": 2155,
        "Invoice": 809,
    }


def test_customers_and_products_are_on_each_shard_with_the_same_ids(imported):
    copies = defaultdict(set)
    for row in imported.rows:
        copies[row.database, row.model].add(row.id)

    assert len(copies["shard1", "Customer"]) == 91
    assert len(copies["shard1", "Product"]) == 77
    for model in COPIED:
        assert copies["shard1", model] == copies["shard2", model]


def test_copies_take_no_numbers(imported):
    assert imported.counters == {
        "customers/A": 91,
        "products/A": 77,
        "orders/A": 830,
        "orderlines/A": 2155,
        "invoices/A": 809,
    }


def test_each_order_is_on_the_shard_of_its_bucket(imported):
    orders = [row for row in imported.rows if row.model == "Order"]

    assert {row.database for row in orders} == {"shard1", "shard2"}
    for row in orders:
        assert row.database == ("shard1" if bucket_of(row.id) < HALF else "shard2")


def test_lines_and_invoices_have_the_database_and_bucket_of_their_order(imported):
    homes = {row.id: row.database for row in imported.rows if row.model == "Order"}
    belonging = [row for row in imported.rows if row.order is not None]

    assert len(belonging) == 2155 + 809
    for row in belonging:
        assert parse(row.id).anchor == row.order
        assert row.database == homes[row.order]
        assert bucket_of(row.id) == bucket_of(row.order)


def test_the_figures_of_each_shard_are_told(imported):
    ids, *shards = imported.printed.split("Northwind on ")
    told = {text[: text.index(":")]: table_of(text) for text in shards}
    counts = Counter(row.database for row in imported.rows)

    assert ids.startswith("Northwind's ids:")
    assert table_of(ids)["Total"][0] == "3,962"
    assert table_of(ids)["Total"][2] == "5", "reservations"
    assert {shard: table["Total"][0] for shard, table in told.items()} == {
        shard: f"{count:,}" for shard, count in counts.items()
    }
    for table in told.values():
        assert table["Total"][2] == "0", "reservations"
        assert int(table["Total"][1]) < 10, "statements"


def test_the_shop_has_its_tables_on_the_shards_and_no_other(imported):
    shop = imported.shop
    tables = shop.python(
        "from django.db import connections\n"
        "print(json.dumps({alias: connections[alias].introspection.table_names()\n"
        "    for alias in connections}))"
    )

    assert not [name for name in tables["default"] if name.startswith("shop_")]
    assert "django_hilo_hilodocument" in tables["default"]
    for shard in ("shard1", "shard2"):
        others = {name for name in tables[shard] if not name.startswith("shop_")}
        assert others == {"django_migrations"}


def test_a_second_import_is_refused(imported):
    shop = imported.shop
    before = shop.rows()

    error = shop.run("import_northwind", NORTHWIND, expect=1)

    assert "In the database 'shard1' already: customer ALFKI and " in error
    assert "Nothing was imported." in error
    assert shop.rows() == before


def test_a_shard_is_not_to_be_chosen(imported):
    shop = imported.shop

    error = shop.run("import_northwind", NORTHWIND, "--database=shard1", expect=1)

    assert "leave out --database=shard1" in error


def test_the_demo_is_refused(imported):
    shop = imported.shop

    assert "unset EXAMPLE_SHARDS" in shop.run("demo", expect=1)


def test_a_made_up_order_goes_to_its_shard_with_what_belongs_to_it(imported):
    shop = imported.shop

    saved = shop.python(
        "from example_project.shop.factories import *\n"
        "from django_hilo.sharding import shard_of\n"
        "saved = []\n"
        "customer, product = Customer.objects.first(), Product.objects.first()\n"
        "OrderFactory.reset_sequence(100001)\n"
        "for order in OrderFactory.build_batch(40, customer=customer):\n"
        "    order.save()\n"
        "    line = OrderLine.objects.create(\n"
        "        order=order, product=product, unit_price=1, quantity=1)\n"
        "    invoice = order.invoices.create(issued_on=order.ordered_on, total=1)\n"
        "    found = Invoice.objects.shard(order).anchored_to(order).get()\n"
        "    assert found == invoice and found.order.customer.name == customer.name\n"
        "    saved.append([shard_of(order.pk), order.pk,\n"
        "        *(each._state.db for each in (order, line, invoice, found))])\n"
        "print(json.dumps(saved))"
    )

    assert {shard for shard, *_ in saved} == {"shard1", "shard2"}
    stored = defaultdict(set)
    for row in shop.rows():
        if row.model not in COPIED:
            stored[row.order or row.id].add((row.database, row.model))
    for shard, order, *databases in saved:
        assert set(databases) == {shard}
        assert stored[order] == {
            (shard, model) for model in ("Order", "OrderLine", "Invoice")
        }


def test_customers_are_read_beside_their_orders_and_written_on_each_shard(imported):
    shop = imported.shop

    read, refused, written = shop.python(
        "from django_hilo.exceptions import ShardError\n"
        "from example_project.shop.shards import shards\n"
        "orders = [Order.objects.using(shard).first() for shard in shards()]\n"
        "read = [order.customer._state.db for order in orders]\n"
        "customer = Customer.objects.first()\n"
        "refused = []\n"
        "for write in (customer.save, customer.delete):\n"
        "    try: write()\n"
        "    except ShardError as error: refused.append(str(error))\n"
        "new = Customer(code='NEW', name='New')\n"
        "for shard in shards(): new.save(using=shard)\n"
        "written = [Customer.objects.using(shard).get(code='NEW').pk\n"
        "    for shard in shards()]\n"
        "for shard in shards():\n"
        "    Customer.objects.using(shard).filter(code='NEW').delete()\n"
        "print(json.dumps([read, refused, written]))"
    )

    assert read == ["shard1", "shard2"]
    assert len(refused) == 2
    assert all("Each shard has a copy of this customer" in text for text in refused)
    assert len(set(written)) == 1


def test_what_one_shard_refuses_no_other_keeps(empty):
    empty.python(
        "from django.db import connections\n"
        "connections['shard2'].cursor().execute(\n"
        "    'ALTER TABLE shop_invoice ADD CHECK (total < 100)')\n"
        "print('null')"
    )

    error = empty.run("import_northwind", NORTHWIND, expect=1)

    assert "Nothing was imported." in error
    assert empty.rows() == []


def test_a_commit_that_fails_after_another_one_is_told(empty):
    # Refused at the commit only, and that of the first shard comes last.
    empty.python(
        "from django.db import connections\n"
        "connections['shard1'].cursor().execute(\n"
        "    'CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '\n"
        "    '$$ BEGIN RAISE $text$no more orders$text$; END $$; '\n"
        "    'CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON shop_order '\n"
        "    'DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()')\n"
        "print('null')"
    )

    error = empty.run("import_northwind", NORTHWIND, expect=1)

    assert "no more orders" in error and "Traceback" not in error
    assert "Nothing was imported" not in error
    assert {row.database for row in empty.rows()} == {"shard2"}
    remedy = error.strip().rpartition("manage.py ")[2]
    assert remedy == "flush --database=shard2"
    empty.run(*remedy.split(), "--no-input")
    assert empty.rows() == []
