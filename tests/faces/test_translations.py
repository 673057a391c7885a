"""The catalogue of texts is complete, and what people see comes from it.

Each text gets a translation that shows that it is one: ``«Raise Max ...»``.
"""

import ast
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from rest_framework.test import APIClient

import django_hilo
from django_hilo.counters import reserve
from django_hilo.models import GaplessCounter, ServerPrefix
from tests.support.commands import output_of
from tests.support.programs import require

pytestmark = pytest.mark.django_db(databases=["default", "other"])

PACKAGE = Path(django_hilo.__file__).parent
CATALOGUE = PACKAGE / "locale/django.pot"
COUNTERS = "/admin/django_hilo/hilodocument/"
PREFIXES = "/admin/django_hilo/serverprefix/"
GAPLESS = "/admin/django_hilo/gaplesscounter/"


@pytest.fixture(scope="module", autouse=True)
def gettext_tools() -> None:
    if shutil.which("msgfmt") is None:
        require("GNU gettext is missing. Debian: apt install gettext")


def run(*command: object, cwd: Path | None = None) -> None:
    output_of(*command, cwd=cwd, env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)})


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """A folder with a translation of every text."""
    folder = tmp_path_factory.mktemp("locale")
    messages = folder / "eo/LC_MESSAGES"
    messages.mkdir(parents=True)
    english, marked = folder / "english.po", messages / "django.po"
    run("msgen", "-o", english, CATALOGUE)
    mark = ["sed", "-e", "1s/^/«/", "-e", "$s/$/»/"]
    run("msgfilter", "--keep-header", "-i", english, "-o", marked, *mark)
    header = marked.read_text().replace("CHARSET", "UTF-8")
    header = header.replace("nplurals=INTEGER", "nplurals=2")
    marked.write_text(header.replace("plural=EXPRESSION", "plural=(n != 1)"))
    run("msgfmt", "--check-format", "-o", messages / "django.mo", marked)
    with override_settings(LOCALE_PATHS=[str(folder)], LANGUAGE_CODE="eo"):
        yield


def texts(catalogue: str) -> list[str]:
    return re.findall(r'^msgid "(.+)"$', catalogue, re.MULTILINE)


def test_the_catalogue_holds_the_texts_of_the_code(tmp_path):
    copy = tmp_path / "django_hilo"
    shutil.copytree(
        PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pot")
    )
    options = ["--keep-pot", "--all", "--add-location=file", "--no-wrap"]
    command = [sys.executable, "-P", "-m", "django", "makemessages", *options]
    run(*command, "--settings=tests.settings", cwd=copy)
    # The date, and what else an edition of gettext writes, stands above the texts.
    new, kept = (
        file.read_text().partition("\n\n")[2]
        for file in (copy / "locale/django.pot", CATALOGUE)
    )
    assert len(texts(new)) > 100
    assert new == kept, "Run: make messages"


def test_a_placeholder_has_a_name():
    for text in texts(CATALOGUE.read_text()):
        assert not re.search(r"%[sdr]|\{\}|%\([a-z]+\)[^srd]", text), text


SHOWN = {
    "CounterExhausted",
    "CounterNotLowered",
    "RangeNotLent",
    "RangeNotReturned",
    "ValidationError",
}
MARKS = {"_", "gettext", "gettext_lazy", "ngettext", "pgettext"}


def unmarked() -> Iterator[str]:
    """Errors that people are shown, with a text of their own that is not marked."""
    for file in PACKAGE.rglob("*.py"):
        if "sources" in file.parts:
            continue  # of other systems' tables and sequences: for developers
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call) or name_of(call.func) not in SHOWN:
                continue
            parts = list(ast.walk(call))
            is_text = any(
                isinstance(part, (ast.Constant, ast.JoinedStr)) for part in parts
            )
            calls = {name_of(part.func) for part in parts if isinstance(part, ast.Call)}
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            # Another error, or a rule, that has its mark where it is made.
            passed_on = {"rule", "refusal"} & names
            if is_text and not calls & MARKS and not passed_on:
                yield f"{file.relative_to(PACKAGE)}:{call.lineno}"


def name_of(function: ast.expr) -> str:
    return getattr(function, "id", getattr(function, "attr", ""))


def test_errors_that_people_are_shown_are_marked():
    assert list(unmarked()) == []


class Texts(HTMLParser):
    """The texts of a page, between its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.found.append(" ".join(data.split()).rstrip(":"))


@pytest.fixture
def rows():
    reserve("orders", 32)
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    GaplessCounter.objects.create(collection="invoices", last=3)


@pytest.mark.parametrize(
    ("address", "posted", "shown"),
    [
        (COUNTERS, None, "«used by»"),
        (f"{COUNTERS}add/", None, "«Start after»"),
        (f"{COUNTERS}orders_2FA/change/", None, "«The counter»"),
        (f"{COUNTERS}orders_2FA/change/?highest=1", None, "«highest id in the tables»"),
        (
            f"{COUNTERS}orders_2FA/change/",
            {"max": 3, "initial-max": 32},
            "«Every process that draws from this counter is stopped»",
        ),
        (f"{COUNTERS}orders_2FA/delete/", None, "«Yes, delete the counter»"),
        (
            COUNTERS,
            {"action": "reserve_block", "_selected_action": "orders/A"},
            "«How many numbers»",
        ),
        (PREFIXES, None, "«an id, for example»"),
        (
            f"{PREFIXES}add/",
            {"node_tag": "b", "prefix": ""},
            "«The node tag 'b' must be 1 to 4 upper-case letters A-Z.»",
        ),
        (GAPLESS, None, "«last number»"),
        (f"{GAPLESS}invoices/change/", None, "«The next number is one higher.»"),
        ("/admin/", None, "«counters»"),
    ],
)
def test_the_admin_is_translated(
    admin_client, rows, translated, address, posted, shown
):
    post = admin_client.post
    answer = post(address, posted) if posted else admin_client.get(address)
    page = answer.content.decode().replace("&#x27;", "'")
    assert shown in page
    # The catalogue's own texts must not stand there as they are.
    found = {*Texts(page).found} & {*texts(CATALOGUE.read_text())}
    assert not found


@pytest.fixture
def client():
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    return client


@pytest.mark.parametrize(
    ("method", "address", "sent", "status", "shown"),
    [
        ("post", "collections/orders/next-id/", {"count": 0}, 400, "«Enter an integer"),
        ("post", "collections/nobody/next-id/", {}, 404, "«No model has ids of"),
        ("get", "documents/orders/C/", None, 404, "«There is no counter 'orders/C'"),
        (
            "patch",
            "documents/orders/A/",
            {"max": 1},
            409,
            "«Max of 'orders/A' is now 32",
        ),
        (
            "post",
            "collections/orders/ranges/return/",
            {"high": 32, "last": 1, "ticket": "0" * 32},
            409,
            "«The range up to 32 is no longer the newest of",
        ),
    ],
)
def test_rest_is_translated(
    client, rows, translated, method, address, sent, status, shown
):
    answer = getattr(client, method)(f"/hilo/{address}", sent, format="json")
    assert answer.status_code == status
    assert shown in answer.content.decode()


def test_the_schema_is_translated(client, translated):
    described = client.options("/hilo/collections/orders/ranges/").json()
    asked = described["actions"]["POST"]["size"]["help_text"]
    assert asked == "«How many consecutive numbers to reserve.»"


def test_a_word_of_two_meanings_has_two_translations():
    catalogue = CATALOGUE.read_text()
    for meaning in ("an id", "a range", "a node tag"):
        assert f'msgctxt "{meaning}"\nmsgid "none"' in catalogue
