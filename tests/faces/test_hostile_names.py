"""Hostile texts through every entrance: refused in a short message, or kept exactly.

Nothing else in the database changes, no answer is a 500, and nothing of 10,000
characters comes back whole from us, in an answer or in a log.
"""

import json
import logging
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import Error, transaction
from django.test import Client
from rest_framework.test import APIClient

from django_hilo import generator
from django_hilo._operations.edit_counter import create_counter
from django_hilo.checks.fields import check_field
from django_hilo.checks.settings import check_settings
from django_hilo.counters import floor, gapless, reservation, returning
from django_hilo.exceptions import HiLoError
from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.identifiers import DocumentId, parse
from django_hilo.models import GaplessCounter, HiLoDocument, ServerPrefix
from django_hilo.sources import Row, hibernate
from tests.apps.records.models import Invoice, Order

pytestmark = pytest.mark.django_db(databases=["default", "other"])

LONG = 10_000
TEXTS = {
    "nul": "a\0b",
    "quotes": "o'r\"d`e--r;",
    "sql": "'; DROP TABLE records_order; --",
    "percent": "%s%(x)s%%",
    "braces": "{0}{x}",
    "lines": "a\nb\r\nSet-Cookie: x=1",
    "backslash": "a\\",
    "markup": "<script>alert(1)</script>",
    "long": "x" * LONG,
    "digits": "9" * LONG,
    "emoji": "😀",
    "emojis": "😀" * LONG,
    "rtl": "orders\u202egnp",
    "full width": "\uff11\uff12",
    "dotless": "İı",
    "combining": "e\u0301",
    "surrogate": "\ud800",
    "dots": "../..",
    "dollar": "$",
    "alias": "other:orders/A",
    "spaces": "   ",
}
TOKEN = "tok"
BOSS = {"authorization": "Basic " + b64encode(b"boss:secret").decode()}

every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
# Each entrance meets these four; each other text meets one entrance of each kind.
SOME = {name: TEXTS[name] for name in ("nul", "sql", "long", "surrogate")}
some_text = pytest.mark.parametrize("text", SOME.values(), ids=SOME)


@pytest.fixture
def boss(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"shop": "default"},
        "RAVENDB_TOKENS": [sha256(TOKEN.encode()).hexdigest()],
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_superuser("boss", password="secret")


@pytest.fixture
def api(boss):
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(boss)
    return client


@pytest.fixture
def web(boss):
    client = Client(raise_request_exception=False)
    client.force_login(boss)
    return client


@pytest.fixture(autouse=True)
def unchanged(caplog):
    """What no test may change, or write to our log."""
    reservation.reserve("orders", 32)
    Order.objects.create(id="kept")
    ServerPrefix.objects.create(node_tag="B", prefix="North/")
    caplog.set_level(logging.DEBUG, "django_hilo")
    before = contents()
    yield
    assert contents() == before
    for record in caplog.records:
        if record.name.startswith("django_hilo"):
            assert len(record.getMessage()) < 1500


def contents() -> list[Any]:
    models = (HiLoDocument, GaplessCounter, ServerPrefix, Order)
    return [list(model.objects.order_by("pk").values()) for model in models]


def in_url(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def in_form(text: str) -> str:
    return text.encode(errors="replace").decode()


def refused(answer: Any, text: str, *, statuses: tuple[int, ...] = (400, 404)) -> None:
    assert answer.status_code in statuses, answer.content[:500]
    assert len(answer.content) < 10_000
    if len(text) == LONG:
        assert text[:1000] not in answer.content.decode()


PATHS = [
    ("get", "documents/{}/A/", None),
    ("patch", "documents/{}/A/", {"max": 50}),
    ("get", "documents/orders/{}/", None),
    ("post", "collections/{}/next-id/", {}),
    ("post", "collections/{}/ranges/", {"size": 1}),
    ("post", "collections/{}/ranges/return/", {"high": 1, "last": 1, "ticket": "a"}),
    ("put", "prefixes/{}/", {"prefix": "South/"}),
    ("post", "gapless/{}/next/", {}),
]
QUERIES = ["database", "page", "page_size", "collection", "node_tag", "ordering"]
BODIES = [
    ("patch", "documents/orders/A/", "max"),
    ("post", "collections/orders/next-id/", "count"),
    ("post", "collections/orders/ranges/", "size"),
    ("post", "collections/orders/ranges/return/", "high"),
    ("post", "collections/orders/ranges/return/", "last"),
    ("post", "collections/orders/ranges/return/", "ticket"),
]


class TestRest:
    @some_text
    def test_paths(self, api, text):
        for method, path, body in PATHS:
            url = "/hilo/" + path.format(in_url(text))
            answer = getattr(api, method)(url, body, format="json" if body else None)
            refused(answer, text)

    @some_text
    def test_bodies(self, api, text):
        for method, path, name in BODIES:
            sent = {"high": 32, "last": 5, "ticket": "forged", name: text}
            answer = api.generic(
                method.upper(), "/hilo/" + path, json.dumps(sent), "application/json"
            )
            refused(answer, text, statuses=(400,))
            form = {**sent, name: in_form(text)}
            answer = getattr(api, method)("/hilo/" + path, form, format="multipart")
            refused(answer, text, statuses=(400,))

    @some_text
    def test_queries(self, api, text):
        for name in QUERIES:
            refused(api.get(f"/hilo/documents/?{name}={in_url(text)}"), text)

    @some_text
    def test_searches(self, api, text):
        answer = api.get(f"/hilo/documents/?search={in_url(text)}")
        assert answer.status_code in (200, 400)
        if answer.status_code == 200 and text.strip():
            assert answer.json()["results"] == []

    @every_text
    def test_server_prefixes(self, api, text):
        """Kept exactly where the grammar allows them, as that of a node of its own."""
        body = json.dumps({"prefix": text + "/"})
        answer = api.generic("PUT", "/hilo/prefixes/Z/", body, "application/json")
        row = ServerPrefix.objects.filter(pk="Z").first()
        if row is None:
            refused(answer, text, statuses=(400,))
        else:
            assert answer.status_code == 200
            assert row.prefix == answer.json()["prefix"] == text + "/"
            assert parse(f"orders/{row.prefix}1-A").server_prefix == row.prefix
            row.delete()


DATABASE = "databases/shop/"
RAVENDB = [
    ("get", "databases/{}/hilo/next?tag=orders"),
    ("get", DATABASE + "hilo/next?tag={}"),
    ("get", DATABASE + "hilo/next?tag=orders&lastBatchSize={}"),
    ("get", DATABASE + "hilo/next?tag=orders&lastMax={}"),
    ("put", DATABASE + "hilo/return?tag={}&end=32&last=5"),
    ("put", DATABASE + "hilo/return?tag=orders&end={}&last=5"),
    ("put", DATABASE + "hilo/return?tag=orders&end=32&last={}"),
    ("post", DATABASE + "identity/next?name={}"),
    ("get", "topology?name={}"),
    ("get", "{}"),
]
FOR_USERS = [
    ("post", DATABASE + "identity/seed?name={}&value=1"),
    ("post", DATABASE + "identity/seed?name=orders&value={}"),
    ("get", DATABASE + "debug/identities?start={}"),
    ("get", DATABASE + "debug/identities?pageSize={}"),
]


class TestRavenDB:
    @some_text
    def test_names_and_numbers(self, web, text):
        for method, path in RAVENDB:
            url = f"/raven/{TOKEN}/" + path.format(in_url(text))
            refused(getattr(web, method)(url), text)

    @some_text
    def test_of_administrators(self, web, text):
        for method, path in FOR_USERS:
            url = "/raven/" + path.format(in_url(text))
            refused(getattr(web, method)(url, headers=BOSS), text)

    @some_text
    def test_separators(self, web, text):
        url = DATABASE + f"hilo/next?tag=orders&identityPartsSeparator={in_url(text)}"
        refused(web.get(f"/raven/{TOKEN}/{url}"), text, statuses=(400,))

    @some_text
    def test_tokens(self, web, text):
        answer = web.get(f"/raven/{in_url(text)}/topology?name=shop")
        refused(answer, text, statuses=(401, 404))

    @every_text
    def test_users(self, web, text):
        raw = (text + ":x").encode("utf-8", "surrogatepass")
        headers = {"authorization": "Basic " + b64encode(raw).decode()}
        answer = web.get("/raven/databases/shop/hilo/next?tag=orders", headers=headers)
        refused(answer, text, statuses=(401,))


PAGES = ["hilodocument", "serverprefix", "gaplesscounter"]
FILTERS = [
    *("q", "o", "p", "all", "e", "database", "node_tag", "_changelist_filters"),
    *("collection", "collection__regex", "max__gt", "reserved_at__year"),
    *("ticket", "ticket__startswith", "_popup", "_to_field"),
]


class TestAdmin:
    """Django's own pages repeat what was typed in their fields, for who typed it."""

    @some_text
    def test_addresses_of_objects(self, web, text):
        for model in PAGES:
            for page in ("change/", "delete/", "history/", ""):
                url = f"/admin/django_hilo/{model}/{in_url(text)}/{page}"
                # 400: Django redirects to no address that is so long.
                assert web.get(url, follow=True).status_code in (200, 400, 403, 404)

    def test_our_message_is_short(self, web):
        url = "/admin/django_hilo/hilodocument/"
        answer = web.get(url, {"database": "x" * LONG}, follow=True)
        (message,) = answer.context["messages"]
        assert "no counters on a database “xxx" in str(message)
        assert len(str(message)) < 200

    @every_text
    def test_forms(self, web, text):
        good = {"database": "default", "collection": "new", "node_tag": "Z"}
        good |= {"max": "1", "prefix": "South/", "last": "1"}
        for model, names in [
            ("hilodocument", ["database", "collection", "node_tag", "max"]),
            ("serverprefix", ["database", "node_tag", "prefix"]),
            ("gaplesscounter", ["database", "collection", "last"]),
        ]:
            for name in names:
                data = good | {name: in_form(text)}
                answer = web.post(f"/admin/django_hilo/{model}/add/", data)
                if answer.status_code == 302:
                    drop_if_exact(model, name, text)
                else:
                    errors = answer.context["adminform"].errors
                    assert name in errors, answer.content
                    # Django's list of choices repeats what was no choice.
                    if name != "database":
                        assert all(len(each) < 500 for each in errors[name])

    @some_text
    def test_actions_and_confirmations(self, web, text):
        url = "/admin/django_hilo/hilodocument/"
        for name in ("action", "_selected_action", "size"):
            data = {"action": "reserve_block", "_selected_action": "orders/A"}
            data |= {"size": "1", name: in_form(text)}
            if (name, text) != ("size", TEXTS["full width"]):
                answer = web.post(url, data, follow=True)
                assert answer.status_code == 200
        for name in ("max", "initial-max", "state", "confirmed"):
            data = {"max": "3", "initial-max": "32", "state": "x", "confirmed": "3"}
            data |= {name: in_form(text)}
            for page in ("change", "delete"):
                answer = web.post(f"{url}orders_2FA/{page}/", data, follow=True)
                assert answer.status_code == 200


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestListsOfTheAdmin:
    """Each query in a transaction of its own, as some make PostgreSQL end it."""

    @some_text
    def test_lists(self, web, text):
        for model in PAGES:
            for name in FILTERS:
                url = f"/admin/django_hilo/{model}/?{name}={in_url(text)}"
                assert web.get(url, follow=True).status_code in (200, 400), name

    def test_a_year_that_no_calendar_has(self, web):
        answer = web.get("/admin/django_hilo/hilodocument/?reserved_at__year=0")
        assert answer.status_code == 302


def drop_if_exact(model: str, name: str, text: str) -> None:
    """A text that was taken stands in the row as it was sent, or as its number."""
    row = {
        "hilodocument": HiLoDocument.objects.filter(collection="new"),
        "serverprefix": ServerPrefix.objects.filter(pk="Z"),
        "gaplesscounter": GaplessCounter.objects.filter(pk="new"),
    }[model].get()
    kept = getattr(row, name)
    # Django reads numbers in the digits of every script, and cuts off spaces.
    assert kept == (int(text) if isinstance(kept, int) else in_form(text).strip())
    row.delete()


NAMED = {
    "next_number": generator.next_number,
    "next_numbers": lambda text: generator.next_numbers(text, 5),
    "next_id": generator.next_id,
    "next_ids": lambda text: generator.next_ids(text, 5),
    "reserve": reservation.reserve,
    "reserve, tag": lambda text: reservation.reserve("orders", node_tag=text),
    "return_range": lambda text: returning.return_range(text, 1, 1, "x"),
    "return_range, ticket": lambda text: returning.return_range("orders", 32, 5, text),
    "raise_floor": lambda text: floor.raise_floor(text, 5),
    "read_max": floor.read_max,
    "gapless": gapless.next_gapless_number,
    "seed": lambda text: gapless.seed_gapless_number(text, 5),
    "create_counter": lambda text: create_counter(
        text, "A", 5, using="default", user=None
    ),
}


class TestPython:
    @some_text
    def test_functions(self, text):
        for call in NAMED.values():
            with pytest.raises((HiLoError, LookupError)) as caught:
                # Django's own message of an unknown label repeats it.
                call(text if "." not in text else "a'b")
            assert len(str(caught.value)) < 500

    @some_text
    def test_settings(self, settings, text):
        for name in ("NODE_TAG", "SEPARATOR", "DATABASE"):
            settings.HILO = {name: text}
            assert list(check_settings(app_configs=None)), name
        settings.HILO = {text: 1}
        assert list(check_settings(app_configs=None))
        settings.HILO = {"SEPARATOR": text}
        with pytest.raises(HiLoError):
            str(DocumentId("orders", "", 1, separator=text))

    @some_text
    def test_fields(self, text):
        for kind in (HiLoField, GaplessIdField, HiLoBigAutoField):
            field = kind(collection=text)
            field.set_attributes_from_name("id")
            field.model = Order
            assert any("E101" in str(each.id) for each in check_field(field)), field


class TestRows:
    @every_text
    def test_ids_and_anchors(self, text):
        """An explicit id may be any text that the column takes."""
        for key in (text[:60], f"others/1${text[:40]}"):
            row = kept_or_none(Order, key)
            if row is not None:
                assert row.pk == key
                assert kept_in_any_order(Order.objects.filter(pk=key))
                row.delete()

    @some_text
    def test_lookups(self, text):
        taken = not set(text) & {"\0", "\ud800"}  # by databases, as any text is
        rows = Order.objects.filter(id__startswith="orders/")
        for name in ("collection", "node_tag", "anchor", "anchor__contains"):
            assert found(rows.filter(**{f"id__{name}": text})) or not taken
        if taken:
            assert found(Invoice.objects.anchored_to(text))
        for lookup in ("id__number", "id__number__gt"):
            with suppress(ValueError, TypeError):
                assert found(rows.filter(**{lookup: text}))

    @some_text
    def test_fixtures_of_counters(self, text):
        fields = {"collection": text, "node_tag": "A", "max": 5}
        row = {"model": "django_hilo.hilodocument", "pk": text, "fields": fields}
        try:
            for each in serializers.deserialize("json", json.dumps([row])):
                each.object.full_clean()
        except (ValidationError, ValueError, Error) as error:
            assert len(str(error)) < 1500
        else:
            raise AssertionError("an invalid collection passed full_clean()")


def found(rows: Any) -> bool:
    """Whether the query ran, with no row; no database takes NUL or half a character."""
    try:
        with transaction.atomic():
            assert list(rows) == []
    except (Error, ValueError):
        return False
    return True


def kept_or_none(model: Any, key: str) -> Any:
    if set(key) & {"\0", "\ud800"} or not key.strip():
        return None  # no database takes these in a text
    model.objects.create(id=key)
    return model.objects.get(pk=key)


def kept_in_any_order(rows: Any) -> bool:
    return rows.order_by("id__number").count() == 1


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestCommands:
    @some_text
    def test_arguments(self, text):
        for command, *arguments in [
            ("hilo_raise_max", text),
            ("hilo_raise_max", "--database", text),
            ("hilo_show", "--database", text),
            ("hilo_show", "--oversized", "0" + text),
            ("hilo_adopt", text),
            ("hilo_adopt", "orders", "--source", text),
            ("hilo_adopt", "orders", "--table", text),
            ("hilo_adopt", "orders", "--dry-run", "--table", f"{text}.id"),
        ]:
            if "0\uff11\uff12" in arguments:
                continue  # a count, in the digits of another script
            with pytest.raises(CommandError) as caught:
                call_command(command, *arguments, stdout=StringIO())
            assert "Traceback" not in str(caught.value)
            if command == "hilo_raise_max" and arguments == [text]:
                assert len(str(caught.value)) < 2000

    @pytest.mark.parametrize(
        "table",
        [
            'records_order" WHERE 1 = 0 --.id',
            'records_order"; DELETE FROM records_order; --.id',
            'records_order.id" + 1, "id',
            "records_order` WHERE 1 = 0 -- .id",
            '"records_order" WHERE "1" = "0".id',
        ],
    )
    def test_no_sql_in_names(self, table):
        with pytest.raises(CommandError, match="quotation mark"):
            call_command("hilo_adopt", "orders", "--table", table, stdout=StringIO())


class TestSources:
    @some_text
    def test_names_of_tables_columns_and_sequences(self, text):
        """Refused by the source or the database; quoted in every case."""
        for source in (
            lambda: hibernate.HiLo(9, table=text, column="next_hi"),
            lambda: hibernate.HiLo(9, table="records_order", column=text),
            lambda: hibernate.SequenceHiLo(9, sequence=text),
            lambda: Row(text, "value", key={"name": text}, start=0),
        ):
            try:
                with transaction.atomic():
                    generator.next_number(source())
            except (HiLoError, Error, ValueError, TypeError, LookupError) as error:
                assert len(str(error)) < 25_000
            else:
                raise AssertionError(f"{text[:20]!r} gave a number")
