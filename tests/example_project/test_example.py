"""The example project, run as a user runs it: each test has its own database file.

What many tests start from is made once, by the commands, and copied for each test.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import termios
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from django_hilo.counters import reserve
from django_hilo.models import HiLoDocument
from example_project.shop.counters import counters
from example_project.shop.northwind import WrongFilesError, read
from tests.support import warm
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE

PROJECT = Path(__file__).resolve().parents[2]
NORTHWIND = Path(
    os.environ.get("HILO_NORTHWIND") or PROJECT.parent / "shared/data/northwind"
)
with_northwind = pytest.mark.skipif(
    not NORTHWIND.is_dir(), reason=f"Northwind's CSV files are not in {NORTHWIND}."
)
pytestmark = pytest.mark.skipif(
    CHOSEN != "sqlite", reason="The example brings its own database: tested once."
)
TABLES = {
    "customers": "shop_customer",
    "products": "shop_product",
    "orders": "shop_order",
    "lines": "shop_orderline",
    "invoices": "shop_invoice",
}
FILES = {
    "customers.csv": """\
customerID,companyName,contactName,address,city,country
ALFKI,Alfreds Futterkiste,Maria Anders,Obere Str. 57,Berlin,Germany
BLONP,Blondel père et fils,NULL,24, place Kléber,Strasbourg,France
""",
    "products.csv": """\
productID,productName,quantityPerUnit,unitPrice,discontinued
1,Chai,10 boxes,18.00,0
2,Chang,24 bottles,19.00,1
""",
    "orders.csv": """\
orderID,customerID,orderDate,shippedDate,freight
10248,ALFKI,1996-07-04 00:00:00.000,1996-07-16 00:00:00.000,32.38
10249,BLONP,1996-07-05 00:00:00.000,NULL,11.61
""",
    "order-details.csv": """\
orderID,productID,unitPrice,quantity,discount
10248,1,14.00,12,0
10248,2,9.80,10,0.15
10249,1,34.80,5,0
""",
}


# What to replace in a file, and how its error then goes on after "FILE, line ".
WRONG_ROWS = {
    "customers.csv": [
        ("BLONP", "ALFKI", "3: customer 'ALFKI' is in line 2 already"),
        ("ALFKI", "", "2: customerID is missing"),
        ("Alfreds", "A" * 100, "2: companyName has 112 characters"),
        ("Alfreds", '"Alfreds', "is not CSV"),
    ],
    "products.csv": [
        ("19.00,1", "19.00,yes", "3: discontinued 'yes' is neither 0 nor 1"),
        ("productID", "id", "1: the header names no column productID"),
    ],
    "orders.csv": [
        ("10249,BLONP", "10249,XXXXX", "3: customer 'XXXXX' is not in customers.csv"),
    ],
    "order-details.csv": [
        ("10249,1", "99,1", "4: order 99 is not in orders.csv"),
        ("34.80,5", "34.80,-5", "4: quantity '-5' is no whole number"),
        ("34.80,5", "NaN,5", "4: unitPrice 'NaN' is no number"),
        ("0.15", "1.01", "3: discount '1.01' is no number from 0 to 1"),
        ("0.15", "0.15,7", "3: has 6 values; the header names 5"),
        ("10248,2,", "10248,1,", "3: order and product (10248, 1) is in line 2"),
    ],
}


ENVIRONMENT = {
    **os.environ,
    "DJANGO_SETTINGS_MODULE": "example_project.settings",
    "EXAMPLE_DATABASE_URL": "sqlite:///none.sqlite3",
    "EXAMPLE_DEBUG": "",
    "FORCE_COLOR": "1",
}


PRELUDE = """
import django
django.setup()
from django.contrib.auth.models import User
from django.test import Client
client = Client(headers={"host": "127.0.0.1"})
"""


class Example:
    """The commands of one example project with a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "example.sqlite3"
        self.printed = ""
        self.environment = {
            **ENVIRONMENT,
            "EXAMPLE_DATABASE_URL": f"sqlite:///{self.database}",
        }

    def copy(self, folder: Path) -> Example:
        """Return an example of the same content, while no process uses this one."""
        copied = Example(folder)
        copied.printed = self.printed
        self.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        wal = self.database.with_name(f"{self.database.name}-wal")
        assert not wal.exists(), "a process still uses the database"
        shutil.copy(self.database, copied.database)
        return copied

    def run(
        self, *arguments: object, file: str = "manage.py", expect: int = 0
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, file, *arguments]
        return warm.run(*command, expect=expect, env=self.environment)

    def python(self, code: str) -> str:
        """Run code in a process of its own, and return what it printed."""
        return self.python_anew(PRELUDE + code)

    def python_anew(self, code: str) -> str:
        return self.run(code, file="-c").stdout

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(self.database)
        try:
            with connection:
                return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def counts(self) -> dict[str, int]:
        return {
            name: self.sql(f"SELECT COUNT(*) FROM {table}")[0][0]
            for name, table in TABLES.items()
        }


# What tests start from: after what, and by which command; FILES are the files here.
MADE: dict[str, tuple[str | None, tuple[object, ...]]] = {
    "migrated": (None, ("migrate", "-v0")),
    "imported": ("migrated", ("import_northwind", FILES)),
    "northwind": ("migrated", ("import_northwind", NORTHWIND)),
    "made_up": (None, ("demo",)),
    "filled": (None, ("demo", FILES)),
}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Example]:
    files = write_files(tmp_path_factory.mktemp("csv"))

    @cache
    def make(name: str) -> Example:
        before, arguments = MADE[name]
        folder = tmp_path_factory.mktemp(name)
        example = make(before).copy(folder) if before else Example(folder)
        said = example.run(*(files if each is FILES else each for each in arguments))
        example.printed = said.stdout
        return example

    return make


def copied(name: str) -> object:
    """Return a fixture that copies what was made once."""

    @pytest.fixture(name=name)
    def fixture(made: Callable[[str], Example], tmp_path: Path) -> Example:
        return made(name).copy(tmp_path)

    return fixture


migrated, imported, northwind, made_up, filled = map(copied, MADE)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "csv"
    folder.mkdir()
    return write_files(folder)


def write_files(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def ids_of(output: str) -> list[tuple[str, str]]:
    """Return the first and the last id of each model, as printed under the table."""
    return re.findall(r"^(\w+/\S+) to (\w+/\S+)\r?$", output, re.MULTILINE)


def table_of(output: str) -> dict[str, list[str]]:
    """Return the rows of a printed table by model."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in output.splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows}


class TestReading:
    def test_a_right_folder(self, folder):
        northwind = read(folder)
        assert [row.code for row in northwind.customers] == ["ALFKI", "BLONP"]
        assert northwind.orders[1].shipped_on is None
        assert northwind.lines[1].discount == Decimal("0.15")
        assert northwind.products[1].discontinued is True

    @pytest.mark.parametrize(
        ("name", "old", "new", "error"),
        [(name, *row) for name, rows in WRONG_ROWS.items() for row in rows],
    )
    def test_a_wrong_row_names_file_and_line(self, folder, name, old, new, error):
        edit(folder, name, old, new)
        with pytest.raises(WrongFilesError) as caught:
            read(folder)
        expected = f"{name}, line {error}" if error[0].isdigit() else f"{name}, line"
        assert caught.value.errors[0].startswith(expected)
        assert error in caught.value.errors[0]

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize(
        ("make", "error"),
        [
            (Path.unlink, ": the file is missing"),
            (lambda path: path.write_bytes(b""), ": the file is empty"),
            (
                lambda path: path.write_text(path.read_text("utf-8").split("\n")[0]),
                ": the file holds no row",
            ),
            (
                lambda path: path.write_text(path.read_text("utf-8"), "utf-16"),
                ", line 1: is not UTF-8",
            ),
        ],
        ids=["missing", "empty", "header", "utf-16"],
    )
    def test_a_wrong_file(self, folder, name, make: Callable[[Path], object], error):
        make(folder / name)
        with pytest.raises(WrongFilesError) as caught:
            read(folder)
        assert len(caught.value.errors) == 1, "one cause, one error"
        assert caught.value.errors[0].startswith(name)
        assert error in caught.value.errors[0]


class TestImport:
    @with_northwind
    def test_northwind(self, northwind):
        printed = northwind.printed
        assert northwind.counts() == {
            "customers": 91,
            "products": 77,
            "orders": 830,
            "lines": 2155,
            "invoices": 0,
        }
        table = table_of(printed)
        rows = {name: cells[0] for name, cells in table.items()}
        assert rows == {
            "Model": "Rows",
            "Customers": "91",
            "Products": "77",
            "Orders": "830",
            "Order lines": "2,155",
            "Total": "3,153",
        }
        assert [cells[2] for cells in table.values()][1:] == ["1", "1", "1", "1", "4"]
        assert ids_of(printed)[2] == ("orders/1-A", "orders/830-A")
        statements = [int(cells[1]) for cells in list(table.values())[1:]]
        assert sum(statements[:-1]) == statements[-1] < 100
        assert "\x1b" not in printed, "plain text without a terminal"

    def test_ids_are_given_before_any_insert(self, migrated, folder):
        order = migrated.python(
            "from django.core.management import call_command\n"
            "from django.db import connection\n"
            "from django_hilo.signals import range_reserved\n"
            "def note(execute, sql, params, many, context):\n"
            "    if sql.startswith('INSERT INTO \"shop_'): print('insert')\n"
            "    return execute(sql, params, many, context)\n"
            "def reserved(**kwargs): print('reserved')\n"
            "range_reserved.connect(reserved)\n"
            "with connection.execute_wrapper(note):\n"
            f"    call_command('import_northwind', {str(folder)!r}, verbosity=0)\n"
        )
        assert order.split() == ["reserved"] * 4 + ["insert"] * 4

    def test_a_wrong_row_imports_nothing(self, migrated, folder):
        edit(folder, "order-details.csv", "34.80,5", "34.80,many")
        done = migrated.run("import_northwind", folder, expect=1)
        assert "order-details.csv, line 4: quantity 'many' is no" in done.stderr
        assert "Nothing was imported." in done.stderr
        assert "Traceback" not in done.stderr
        assert not any(migrated.counts().values())

    def test_a_second_import_is_refused(self, imported, folder):
        before = imported.counts()
        assert before["lines"] == 3
        done = imported.run("import_northwind", folder, expect=1)
        assert "customer ALFKI and 5 more rows of these files" in done.stderr
        assert "Nothing was imported." in done.stderr
        assert imported.counts() == before


class TestDemo:
    def test_the_pages_it_requests(self, made_up):
        visits = re.findall(
            r"^(GET|POST) +http://127\.0\.0\.1:\d+(\S+)  (\d+)  (\d+) bytes  (.*)$",
            made_up.printed,
            re.MULTILINE,
        )
        paths = [path for _, path, *_ in visits]
        assert {status for _, _, status, *_ in visits} == {"200"}
        assert paths[:6] == [
            "/",
            "/static/shop/shop.css",
            "/static/shop/favicon.svg",
            "/customers/",
            "/products/",
            "/orders/",
        ]
        assert any(re.search(r"OrderLines_2F\d+-A_24orders_2F", path) for path in paths)
        assert any(re.search(r"invoices_2F\d+/change", path) for path in paths)
        assert {"/admin/", "/api/docs/", "/api/hilo/documents/"} <= set(paths)
        assert f"{len(visits)} pages, each answered with 200." in made_up.printed

    def test_what_it_makes(self, made_up):
        counts = made_up.counts()
        assert counts["customers"] == 20
        assert counts["products"] == 30
        assert counts["orders"] == 200
        assert 200 <= counts["lines"] <= 1000
        assert 50 <= counts["invoices"] <= 200
        table = table_of(made_up.printed)
        assert table["Total"][2] == "4", "reservations"
        invoices = counts["invoices"]
        assert ids_of(made_up.printed) == [
            ("customers/1-A", "customers/20-A"),
            ("products/1-A", "products/30-A"),
            ("orders/1-A", "orders/200-A"),
            (
                "OrderLines/1-A$orders/1-A",
                f"OrderLines/{counts['lines']}-A$orders/200-A",
            ),
            ("invoices/1", f"invoices/{invoices}"),
        ]
        wrong = "SELECT id FROM shop_orderline WHERE id NOT LIKE '%$' || order_id"
        assert made_up.sql(wrong) == []
        by_day = made_up.sql("SELECT id FROM shop_invoice ORDER BY issued_on, rowid")
        assert by_day == [(f"invoices/{n}",) for n in range(1, invoices + 1)]
        self.check_years(made_up)

    def test_invoices_of_an_earlier_demo_are_numbered(self, made_up):
        before = made_up.sql("SELECT id, number FROM shop_invoice ORDER BY id")
        made_up.run("migrate", "shop", "0005", "-v0")
        made_up.sql(
            "DELETE FROM django_hilo_gaplesscounter WHERE collection LIKE '%.%'"
        )
        made_up.run("migrate", "-v0")
        after = made_up.sql("SELECT id, number FROM shop_invoice ORDER BY id")
        assert after == before
        self.check_years(made_up)
        year = before[0][1][4:8]
        following = made_up.python(
            "from example_project.shop.models import Invoice, Order\n"
            f"print(Invoice.objects.create(order=Order.objects.first(), total=1, "
            f"issued_on='{year}-12-31').number)"
        )
        count = sum(number.startswith(f"INV-{year}-") for _, number in before)
        assert following.strip() == f"INV-{year}-{count + 1:04}"

    def check_years(self, made_up):
        """Each year counts from 1, without a gap."""
        numbers = sorted(n for (n,) in made_up.sql("SELECT number FROM shop_invoice"))
        for start, group in groupby(numbers, key=lambda number: number[:9]):
            mine = list(group)
            assert mine == [f"{start}{n:04}" for n in range(1, len(mine) + 1)]

    def test_a_page_that_fails_is_told(self, filled, folder):
        filled.sql("ALTER TABLE django_admin_log RENAME TO elsewhere")
        done = filled.run("demo", folder, expect=1)
        assert re.search(r"/admin/  500  .*WRONG", done.stdout)
        assert "pages did not answer as they should" in done.stderr


class TestDemoWithNorthwind:
    def test_twice(self, filled, folder):
        before = filled.counts()
        assert before["invoices"] == 1
        printed = filled.run("demo", folder).stdout
        assert "6 rows of" in printed
        assert filled.counts() == before
        assert table_of(printed)["Order lines"][0] == "3"
        assert ids_of(printed)[-1] == ("invoices/1", "invoices/1")


class TestTerminal:
    """The demo where a user sits at a terminal: it serves until Ctrl-C."""

    def test_it_serves_until_interrupted(self, example, folder):
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "manage.py", "demo", str(folder)],
            cwd=PROJECT,
            env={**example.environment, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # A runner in the background may have it ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        try:
            printed = _read_until(ours, "Ctrl-C ends it.")
            url = re.search(r"http://127\.0\.0\.1:\d+/", printed)
            password = re.search(r"Password: +(\S{16})\r", printed)
            assert url and password and re.search(r"User: +admin\r", printed)
            page = build_opener(ProxyHandler({})).open(url[0], timeout=PATIENCE)
            with page:
                assert b"Counters" in page.read()
            assert "10/10" in printed, "the end of the progress bar"
            lines = ("OrderLines/1-A$orders/1-A", "OrderLines/3-A$orders/2-A")
            assert lines in ids_of(printed), "no id is broken at 80 columns"
            process.send_signal(signal.SIGINT)
            _read_until(ours, "The server has ended.")
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        checked = example.python(
            "from django.contrib.auth import authenticate\n"
            f"user = authenticate(username='admin', password={password[1]!r})\n"
            "print(user.is_superuser)"
        )
        assert checked.strip() == "True"


class TestPages:
    def test_nothing_is_loaded_from_elsewhere_or_written_into_the_page(self, filled):
        filled.sql("UPDATE shop_product SET name = '<script>alert(1)</script>'")
        filled.sql("UPDATE shop_customer SET name = '<b>bold</b>'")
        html = filled.python(
            "from example_project.shop.visits import shop_pages\n"
            "for path in shop_pages():\n"
            "    if 'static' not in path: print(client.get(path).content.decode())"
        )
        assert html.count("<!doctype html>") == 7
        assert "&lt;script&gt;alert(1)" in html and "&lt;b&gt;bold" in html
        for unsafe in ("<script", "<style", " style=", "<b>", "http:", "https:"):
            found = [m for m in re.findall(r"<[^>]*>", html) if unsafe in m]
            assert found == [], unsafe
        assert not re.search(r"<[^>]*\son\w+=", html), "no script in an attribute"

    def test_the_front_page_tells_what_the_counters_do(self, filled):
        filled.sql("INSERT INTO django_hilo_gaplesscounter VALUES ('receipts', 41, '')")
        printed = filled.python(
            "import re\n"
            "from django.utils.html import strip_tags\n"
            "html = client.get('/').content.decode()\n"
            "for row in re.findall('<tr>.*?</tr>', html, re.DOTALL):\n"
            "    print(' '.join(strip_tags(re.sub('</t[dh]>', '|', row)).split()))\n"
            "print('hilodocument' in html)\n"
            "client.force_login(User.objects.get())\n"
            "html = client.get('/').content.decode()\n"
            'for link in re.findall(\'href="([^"]*)"\', html):\n'
            "    if link[0] == '/': print(client.get(link).status_code, link)\n"
        )
        lines = printed.splitlines()
        orders = next(line for line in lines if line.startswith("orders|"))
        assert re.fullmatch(
            r"orders\| ?A\| ?order\| ?2\| ?1 to 2\| ?(now|.* ago)\| ?orders/3-A\|.*",
            orders,
        )
        assert any(re.match(r"receipts\| ?41\|", line) for line in lines)
        assert any(line.startswith("OrderLines|") for line in lines)
        assert "False" in lines, "counters have no links where nobody is logged in"
        links = lines[lines.index("False") + 1 :]
        assert "200 /admin/django_hilo/hilodocument/orders_2FA/change/" in links
        assert {"200 /api/docs/", "200 /api/schema/", "200 /readme/"} < set(links)
        others = [link for link in links if not link.startswith("200")]
        assert all(link.startswith("404 /static/shop/") for link in others)

    def test_an_order_lists_its_lines_by_number_with_plain_ids(self, filled):
        filled.sql("UPDATE shop_product SET number = 9 WHERE number = 1")
        html = filled.python(
            "from example_project.shop.models import Order\n"
            "order = Order.objects.get(number=10248)\n"
            "print(client.get(order.get_absolute_url()).content.decode())\n"
        )
        lines = re.findall(r"<code>(OrderLines.*?)</code>", html)
        assert lines == ["OrderLines/1-A", "OrderLines/2-A"]

    @pytest.mark.parametrize("pk", ["nonsense", "orders/9-A", "orders/1-A%00", "a$"])
    def test_ids_that_no_row_has(self, migrated, pk):
        printed = migrated.python(
            f"print(client.get('/order/{pk}/').status_code)\n"
            f"print(client.get('/invoice/{pk}/').status_code)"
        )
        assert printed.split() == ["404", "404"]


class TestApi:
    """The shop's objects over REST, and what else the example serves to programs."""

    CLIENT = (
        "from django.contrib.auth.models import Permission, User\n"
        "from rest_framework.test import APIClient\n"
        "from example_project.shop.models import *\n"
        "client = APIClient(headers={'host': '127.0.0.1'})\n"
        "admin = User.objects.get()\n"
    )

    def test_the_schema_is_valid_and_has_no_warning(self, example):
        example.run("spectacular", "--validate", "--fail-on-warn")

    def test_the_documentation_loads_nothing_from_elsewhere(self, migrated):
        html = migrated.python("print(client.get('/api/docs/').content.decode())")
        loaded = re.findall(r'(?:src|href)="([^"]*)"', html)
        assert len(loaded) >= 4
        assert all(url.startswith(("/", "?")) for url in loaded), loaded
        assert not re.search(r"<script[^>]*>[^<]", html), "no script in the page"

    def test_ids_for_clients_of_ravendb(self, filled):
        printed = filled.python(
            self.CLIENT + "from example_project.shop.administrator import new_token\n"
            "path = '/databases/shop/hilo/next?tag=orders&lastBatchSize=0'\n"
            "path += '&lastRangeAt=&identityPartsSeparator=/&lastMax=0'\n"
            "print(client.get('/raven' + path).status_code)\n"
            "answer = client.get(f'/raven/{new_token()}' + path)\n"
            "print(answer.status_code, answer.json()['Prefix'], answer.json()['Low'])\n"
        )
        assert printed.splitlines() == ["401", "201 orders/ 3"]


class TestSettings:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            (
                "postgres://me:p%40ss@db:5433/shop?sslmode=require",
                "postgresql me p@ss db 5433 shop require",
            ),
            ("postgresql://localhost/shop", "postgresql localhost shop"),
            ("mysql://me:hush@127.0.0.1/shop", "mysql me hush 127.0.0.1 shop utf8mb4"),
            ("mariadb://me@h:3307/shop", "mysql me h 3307 shop utf8mb4"),
        ],
    )
    def test_urls_of_servers(self, url, expected):
        from example_project.databases import from_url

        found = from_url(url)
        engine = found["ENGINE"].removeprefix("django.db.backends.")
        values = [found[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")]
        texts = [text for text in [engine, *values, *found["OPTIONS"].values()] if text]
        assert " ".join(texts) == expected

    @pytest.mark.parametrize(
        "url", ["oracle://me:hush@h/shop", "postgres://h", "x", ""]
    )
    def test_other_urls_are_refused_without_showing_them(self, url):
        from django.core.exceptions import ImproperlyConfigured

        from example_project.databases import from_url

        with pytest.raises(ImproperlyConfigured) as caught:
            from_url(url)
        assert "hush" not in str(caught.value)

    def test_the_key_is_new_at_each_start_and_debug_is_off(self, example):
        code = "from django.conf import settings as s; print(s.SECRET_KEY, s.DEBUG)"
        example.environment.pop("EXAMPLE_SECRET_KEY", None)
        first, second = example.python_anew(code), example.python_anew(code)
        assert first != second
        assert first.endswith(" False\n")

    def test_no_migration_is_missing(self, example):
        example.run("makemigrations", "--check", "--dry-run")

    def test_sqlite_waits_for_writers(self, migrated):
        assert migrated.sql("PRAGMA journal_mode") == [("wal",)]


def _read_until(descriptor: int, text: str) -> str:
    printed = ""
    while text not in printed:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE)
        assert ready, f"{text!r} did not come: {printed}"
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the other end is closed
            data = b""
        assert data, f"{text!r} did not come: {printed}"
        printed += data.decode()
    return printed


@pytest.mark.django_db(transaction=True)
def test_the_front_page_counts_from_the_floor():
    reserve("orders", 5)
    HiLoDocument.objects.update(floor=50)
    assert [counter.next_id for counter in counters()] == ["orders/51-A"]
    HiLoDocument.objects.update(max=2**63 - 1)
    assert [counter.next_id for counter in counters()] == [""]
