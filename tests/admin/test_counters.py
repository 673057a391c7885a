import html
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from django_hilo.counters import raise_floor, read_max, reserve
from django_hilo.generator import next_id
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import counter_changed
from django_hilo.sources import hibernate
from tests.apps.records.models import Order
from tests.support import foreign
from tests.support.databases import CHOSEN
from tests.support.sql import execute, hide_table

pytestmark = pytest.mark.django_db(databases=["default", "other"])

make = foreign.make
LIST = "/admin/django_hilo/hilodocument/"
ORDERS = LIST + "orders_2FA/"
OTHERS = LIST + "other_3Aorders_2FB/"
RAISE_TO_HIGHEST = {"action": "raise_to_highest", "index": "0"}
RESERVE_BLOCK = {"action": "reserve_block", "index": "0"}


def text_of(response: Any) -> str:
    """What a reader sees of the page, without the menus around it."""
    page = response.content.decode()
    page = page[page.find("<body") : page.find("<footer")]
    page = page[max(page.find('class="messagelist"'), 0) :] or page
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


def hidden_of(response: Any) -> dict[str, Any]:
    """The hidden inputs of the page's own form, but for the CSRF token's."""
    page = response.content.decode()
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {k: html.unescape(v) for k, v in found if k != "csrfmiddlewaretoken"}


def change(client: Client, new: object, seen: object, url: str = ORDERS) -> Any:
    data = hidden_of(client.get(url + "change/"))
    data |= {"max": new, "initial-max": seen, "_save": "Save"}
    return client.post(url + "change/", data, follow=True)


def confirmed(page: Any, number: int) -> dict[str, Any]:
    """What the form sends that asked for the confirmation, once it is ticked."""
    [box] = re.findall(r"<input[^>]+checkbox[^>]+>", page.content.decode())
    assert 'name="confirmed"' in box
    assert not re.search(r"\schecked[\s>]", box)
    [value] = re.findall(r'value="(\d+)"', box)
    return hidden_of(page) | {"max": number, "confirmed": value}


def histories(url_id: str) -> list[str]:
    entries = LogEntry.objects.filter(object_id=url_id).order_by("pk")
    return [entry.get_change_message() for entry in entries]


@pytest.fixture
def changes(heard: Any) -> list[Any]:
    return heard(counter_changed)


# The list


def test_the_list_shows_each_counter(admin_client):
    reserve("orders", 32)
    Order.objects.create(id="orders/900-A")
    reserve("orderlines", 1)
    reserve("unused", 1_000_000)
    HiLoDocument.objects.create(collection="added", node_tag="A", max=5)
    past = timezone.now() - timedelta(hours=2, minutes=9)
    HiLoDocument.objects.filter(size__gt=0).update(reserved_at=past)
    page = text_of(admin_client.get(LIST))
    assert "Database: default" in page
    assert "OrderLines A 1 records.OrderLine" in page, "as ids write it"
    assert re.search(r"orders A 900 [\w., ]*records.Order[\w., ]* 2 hours,", page)
    assert "unused A 1,000,000 no model 2 hours," in page
    assert "added A 5 no model never" in page


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_the_list_shows_the_counters_of_other_systems(admin_client, settings, make):
    make(foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (200000000)")
    partner = hibernate.HiLo(9, max_number=2**31 - 1)
    sources = {"orders": partner, "tickets": hibernate.HiLo(9, "no_such_row")}
    settings.HILO = {"NODE_TAG": {"other": "B"}, "SOURCES": sources}
    page = text_of(admin_client.get(LIST))
    _, _, others = page.partition("Counters of other systems")
    assert "default hibernate_unique_key.next_hi 1,999,999,999 93%" in others
    assert "tickets default no_such_row.next_hi no_such_row" in others
    page = admin_client.get(LIST + "?database=other").content.decode()
    assert "no_such_row" not in page


@pytest.mark.parametrize("use", [True, False])
def test_numbers_have_separators_and_ids_have_none(admin_client, settings, use):
    settings.USE_THOUSAND_SEPARATOR = use
    reserve("tickets", 1_234_567)
    tickets = f"{LIST}tickets_2FA/"
    with translation.override("de"):
        pages = [
            admin_client.get(LIST),
            admin_client.get(tickets + "change/"),
            admin_client.get(tickets + "delete/"),
            admin_client.post(LIST, RESERVE_BLOCK | {"_selected_action": "tickets/A"}),
        ]
    form = pages[1].content.decode()
    assert 'name="max" value="1234567"' in form
    assert "tickets/1234568-A to tickets/" in text_of(pages[1])
    assert "more than 100.000.000 needs confirmation" in text_of(pages[1])
    change(admin_client, 2_000_000, 1_234_567, tickets)
    assert histories("tickets/A") == ["Raised Max from 1,234,567 to 2,000,000."]
    for page in pages[:3]:
        assert "1.234.567" in text_of(page)
    assert "1.234.568" in text_of(pages[3])


def test_search_filter_and_order(admin_client):
    for name, size in [("orders", 5), ("users", 50), ("invoices", 7)]:
        reserve(name, size)
    reserve("orders", 3, node_tag="")
    rows = lambda query: re.findall(  # noqa: E731
        r"hilodocument/([^/]+)/change", admin_client.get(LIST + query).content.decode()
    )
    assert rows("?q=ORD") == ["orders_2F", "orders_2FA"]
    assert rows("?node_tag=-") == ["orders_2F"]
    assert rows("?node_tag=A") == ["invoices_2FA", "orders_2FA", "users_2FA"]
    assert rows("?o=-3")[0] == "users_2FA"
    assert rows("?o=3")[0] == "orders_2F"


def test_the_switch_shows_the_other_database(admin_client):
    reserve("orders", 32)
    reserve("users", 32, using="other")
    page = admin_client.get(LIST + "?database=other")
    assert "Database: other" in text_of(page)
    assert "users B 32" in text_of(page)
    assert "other_3Ausers_2FB/change/" in page.content.decode()
    assert "orders_2FA" not in page.content.decode()


def test_one_database_needs_no_switch(admin_client, settings):
    settings.HILO = {"DATABASE": "default"}
    reserve("orders", 32)
    page = admin_client.get(LIST).content.decode()
    assert "?database=" not in page
    assert "Database:" not in page
    assert 'name="database"' not in admin_client.get(LIST + "add/").content.decode()


def test_the_list_costs_the_same_for_one_row_and_fifty(
    admin_client, django_assert_num_queries
):
    reserve("orders", 1)
    admin_client.get(LIST)
    with django_assert_num_queries(0, using="other"):
        with CaptureQueriesContext(connection) as one:
            admin_client.get(LIST)
        for number in range(50):
            reserve(f"c{number}", 1)
        with CaptureQueriesContext(connection) as fifty:
            admin_client.get(LIST)
    assert len(fifty) == len(one)


def test_an_unknown_database_is_told(admin_client):
    page = text_of(admin_client.get(LIST + "?database=nowhere", follow=True))
    assert "There are no counters on a database “nowhere”." in page
    assert "Database: default" in page


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_database_without_the_tables_is_told_on_the_list_of_the_first(admin_client):
    table = HiLoDocument._meta.db_table
    reserve("orders", 32, using="other")
    execute(f"ALTER TABLE {table} RENAME TO {table}_gone", using="other")
    try:
        page = text_of(admin_client.get(LIST + "?database=other", follow=True))
        assert "The database “other” gave an error" in page
        assert "migrate --database=other" in page
        assert "Database: default" in page
        one = admin_client.get(OTHERS + "change/", follow=True)
        assert "The database “other” gave an error" in text_of(one)
    finally:
        execute(f"ALTER TABLE {table}_gone RENAME TO {table}", using="other")


# Add


def test_add_starts_a_counter(admin_client, changes, admin_user):
    form = admin_client.get(LIST + "add/").context["adminform"].form
    assert (form.initial["database"], form.initial["node_tag"]) == ("default", "A")
    data = {"database": "default", "collection": "Orders", "node_tag": "A", "max": 99}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "orders/A ” was added successfully" in text_of(page)
    assert next_id(Order) == "orders/100-A"
    assert histories("orders/A") == ["Started after 99."]
    assert (changes[0]["change"], changes[0]["user"]) == ("created", admin_user)


@pytest.mark.parametrize("tag", ["", "A"])
def test_counters_that_integer_keys_do_not_use(admin_client, tag):
    data = {"database": "default", "collection": "numbers_item", "node_tag": tag}
    page = admin_client.post(LIST + "add/", data | {"max": 999}, follow=True)
    is_used = CHOSEN != "postgres" and not tag
    assert HiLoDocument.objects.exists() is is_used
    told = (
        "start them at 1000, call raise_floor('numbers.Item', 999) of django_hilo.gen"
    )
    assert (told in text_of(page)) is not is_used
    raise_floor("numbers_item", 999, node_tag=tag)
    shown = text_of(admin_client.get(LIST))
    user = "numbers.Item" if is_used else "no model"
    assert f"numbers_item {tag or 'none'} 999 {user} never" in shown
    page = change(admin_client, 1999, 999, f"{LIST}numbers_5Fitem_2F{tag}/")
    assert read_max("numbers_item", node_tag=tag) == (1999 if is_used else 999)
    assert ("call raise_floor('numbers.Item', 1999)" in text_of(page)) is not is_used


def test_a_counter_of_a_collection_with_a_source(admin_client, settings):
    settings.HILO = {**settings.HILO, "SOURCES": {"orders": hibernate.HiLo(9)}}
    data = {"database": "default", "collection": "orders", "node_tag": "A"}
    page = admin_client.post(LIST + "add/", data | {"max": 999}, follow=True)
    assert "call raise_floor('records.Order', 999)" in text_of(page)
    assert not HiLoDocument.objects.exists()


def test_add_on_another_database(admin_client):
    url = LIST + "add/?_changelist_filters=database%3Dother"
    form = admin_client.get(url).context["adminform"].form
    assert (form["database"].initial, form.initial["node_tag"]) == ("other", "B")
    data = {"database": "other", "collection": "orders", "node_tag": "B", "max": 9}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "Database: other" in text_of(page)
    assert next_id(Order, "other") == "orders/10-B"
    assert histories("other:orders/B") == ["Started after 9."]
    assert not HiLoDocument.objects.exists()


def test_a_home_that_is_not_the_default_database(admin_client, settings):
    settings.HILO = {"DATABASE": "other", "NODE_TAG": {"other": "B"}}
    data = {"collection": "orders", "node_tag": "B", "max": 9}
    admin_client.post(LIST + "add/", data)
    change(admin_client, 50, 9, LIST + "orders_2FB/")
    assert read_max("orders", "other") == 50
    assert "Raised Max from 9 to 50." in histories("orders/B")
    assert not HiLoDocument.objects.exists()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"collection": "Orders"}, "“orders/A” exists on “default” already"),
        ({"collection": "3rd"}, "must start with a letter"),
        ({"node_tag": "abc"}, "must be 1 to 4 upper-case letters"),
        ({"max": -1}, "greater than or equal to 0"),
        ({"max": 2**63}, f"less than or equal to {MAX_NUMBER}"),
        ({"max": "x"}, "Enter a whole number"),
        ({"database": "nowhere"}, "Select a valid choice"),
    ],
)
def test_add_refuses(admin_client, given, error):
    reserve("orders", 32)
    data = {"database": "default", "collection": "new", "node_tag": "A", "max": 5}
    page = admin_client.post(LIST + "add/", data | given)
    assert page.status_code == 200
    assert error in text_of(page)
    assert HiLoDocument.objects.count() == 1
    assert read_max("orders") == 32


# Change: raise


def test_the_page_shows_what_comes_next_and_reads_no_table(
    admin_client, django_assert_max_num_queries
):
    Order.objects.create()
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    with CaptureQueriesContext(connection) as queries:
        page = text_of(admin_client.get(ORDERS + "change/"))
    assert "orders/North/33-A to orders/North/64-A, or more" in page
    assert "records.Order" in page
    assert "Raising Max permanently skips the numbers" in page
    assert "Look it up" in page
    assert not [q for q in queries if "records_order" in q["sql"]]


def test_the_highest_id_is_looked_up_when_asked_for(admin_client):
    for number in (7, 450, 9):
        Order.objects.create(id=f"orders/{number}-A")
    page = text_of(admin_client.get(ORDERS + "change/?highest=1"))
    assert "records.Order (default): orders/450-A" in page
    unused = read_max("orders") - 3
    assert f"Numbers up to Max without a row: at least {unused}." in page


def test_numbers_without_a_row_are_not_counted_without_all_tables(
    admin_client, monkeypatch
):
    reserve("unused", 32)
    page = text_of(admin_client.get(LIST + "unused_2FA/change/?highest=1"))
    assert "no model" in page
    assert "without a row" not in page
    reserve("orders", 32)
    hide_table(Order, monkeypatch)
    page = text_of(admin_client.get(ORDERS + "change/?highest=1"))
    assert "cannot be read: " in page
    assert "without a row" not in page


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (None, "Reserved in the last 24 hours: 0 "),
        (timedelta(days=1, seconds=1), "Reserved in the last 24 hours: 0 "),
        (timedelta(hours=20), "Reserved in the last 24 hours: at least 32 (newest"),
    ],
)
def test_only_the_newest_range_is_known_of_the_last_day(admin_client, age, told):
    reserve("orders", 32)
    at = timezone.now() - age if age else None
    HiLoDocument.objects.update(reserved_at=at)
    assert told in text_of(admin_client.get(ORDERS + "change/"))


def test_a_bar_shows_the_share_of_all_numbers(admin_client):
    three_quarters = MAX_NUMBER // 4 * 3
    HiLoDocument.objects.create(collection="orders", node_tag="A", max=three_quarters)
    for url in (LIST, ORDERS + "change/"):
        page = admin_client.get(url).content.decode()
        assert re.search(r'<meter min="0" max="100" [^>]*value="75"></meter>', page)
        assert "75%" in page


def test_raise(admin_client, changes, admin_user):
    reserve("orders", 32)
    page = change(admin_client, 500, 32)
    assert "was changed successfully" in text_of(page)
    assert next_id(Order) == "orders/501-A"
    assert histories("orders/A") == ["Raised Max from 32 to 500."]
    told = changes[0]
    assert (told["change"], told["old"], told["new"]) == ("raised", 32, 500)
    assert told["user"] == admin_user


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1_033, "lost: 1,001, those of the ids orders/33-A to orders/1033-A."),
        (MAX_NUMBER, "Numbers that would be left: 0, less than a tenth of all."),
    ],
)
def test_a_raise_that_loses_many_numbers_asks_first(
    admin_client, settings, number, told
):
    settings.HILO = settings.HILO | {"MAX_FLOOR_JUMP": 1000}
    reserve("orders", 32)
    page = change(admin_client, number, 32)
    assert told in text_of(page)
    assert "Skip these numbers" in text_of(page)
    assert "Every process that draws" not in text_of(page)
    assert read_max("orders") == 32
    admin_client.post(ORDERS + "change/", confirmed(page, number))
    assert read_max("orders") == number
    assert histories("orders/A") == [f"Raised Max from 32 to {number:,}."]


def test_a_raise_by_more_than_a_hundred_million_asks(admin_client):
    reserve("orders", 32)
    change(admin_client, 100_000_032, 32)
    assert read_max("orders") == 100_000_032
    page = change(admin_client, 200_000_033, 100_000_032)
    assert "Numbers that would be lost: 100,000,001," in text_of(page)
    assert read_max("orders") == 100_000_032


def test_any_raise_into_the_last_tenth_asks(admin_client):
    tenth = MAX_NUMBER - MAX_NUMBER // 10
    HiLoDocument.objects.create(collection="orders", node_tag="A", max=tenth - 1)
    change(admin_client, tenth, tenth - 1)
    assert read_max("orders") == tenth
    page = change(admin_client, tenth + 1, tenth)
    assert "Numbers that would be lost: 1," in text_of(page)
    assert "would be left: 922,337,203,685,477,579," in text_of(page)
    assert read_max("orders") == tenth


def test_a_tick_confirms_no_other_number(admin_client):
    """One typed after the page had asked, even if it lowers Max."""
    reserve("orders", 100)
    asked = change(admin_client, 20, 100)
    for number in (10, 5_000_000_000):
        data = confirmed(asked, number)
        asked = admin_client.post(ORDERS + "change/", data)
        assert read_max("orders") == 100
    assert "Numbers that would be lost: 4,999,999,900," in text_of(asked)
    assert "given a second time" not in text_of(asked)


def test_an_edit_touches_the_database_that_its_page_named(admin_client):
    reserve("orders", 32)
    reserve("orders", 32, using="other", node_tag="A")
    reserve("orders", 32, using="other")
    change(admin_client, 500, 32, LIST + "other_3Aorders_2FA/")
    change(admin_client, 700, 32, OTHERS)
    assert read_max("orders") == 32
    assert read_max("orders", "other", node_tag="A") == 500
    assert read_max("orders", "other") == 700
    history = text_of(admin_client.get(OTHERS + "history/"))
    assert "Raised Max from 32 to 700." in history
    assert "500" not in history
    recent = admin_client.get("/admin/").content.decode()
    assert OTHERS + "change/" in recent
    assert admin_client.get(OTHERS + "change/").status_code == 200


def test_saving_what_was_there_changes_nothing(admin_client):
    reserve("orders", 32)
    ticket = HiLoDocument.objects.get().ticket
    page = text_of(change(admin_client, 32, 32))
    assert "The number was not changed." in page
    assert "successfully" not in page
    data = hidden_of(admin_client.get(ORDERS + "change/")) | {"_continue": "1"}
    data |= {"max": 32, "initial-max": 32}
    assert admin_client.post(ORDERS + "change/", data)["Location"].endswith("/change/")
    assert HiLoDocument.objects.get().ticket == ticket
    assert histories("orders/A") == ["No fields changed."] * 2


@pytest.mark.parametrize("number", ["-1", "x", "", str(2**63), "9" * 5000, "1.5"])
def test_what_is_no_max_is_refused_and_kept_in_the_form(admin_client, number):
    reserve("orders", 32)
    page = change(admin_client, number, 32)
    assert page.context["adminform"].form.errors["max"]
    assert read_max("orders") == 32


@pytest.mark.parametrize("seen", ["", "x", "9" * 5000])
def test_a_forged_seen_max_is_that_of_now(admin_client, seen):
    reserve("orders", 32)
    change(admin_client, 50, seen)
    assert read_max("orders") == 50


@pytest.mark.parametrize("url_id", ["orders_2FZ", "nowhere_3Aorders_2FA", "_3A", "x"])
def test_what_does_not_exist_is_told(admin_client, url_id):
    reserve("orders", 32)
    for view in ("change", "delete", "history"):
        page = admin_client.get(f"{LIST}{url_id}/{view}/", follow=True)
        assert "Perhaps it was deleted?" in text_of(page)


# Change: lower


def test_lowering_asks_first_and_says_which_ids_come_again(admin_client):
    reserve("orders", 100)
    Order.objects.create(id="orders/20-A")
    page = change(admin_client, 20, 100)
    text = text_of(page)
    assert "The ids orders/21-A to orders/100-A could be given a second" in text
    assert "records.Order (default): orders/20-A" in text
    assert "Stop every process that draws from this counter" in text
    assert "Nothing was changed yet: confirm the change, or leave." in text
    assert "correct the error" not in text
    assert "Error:" not in page.content.decode()
    assert read_max("orders") == 100
    # Still without the tick:
    again = admin_client.post(ORDERS + "change/", hidden_of(page) | {"max": 20})
    assert "Then tick the box" in text_of(again)
    assert hidden_of(again) == hidden_of(page)
    assert read_max("orders") == 100


def test_lowering_confirmed(admin_client, changes):
    Order.objects.create()
    assert (
        'type="checkbox" name="confirmed"'
        not in admin_client.get(ORDERS + "change/").content.decode()
    )
    page = change(admin_client, 1, 32)
    assert 'type="checkbox" name="confirmed"' in page.content.decode()
    page = admin_client.post(ORDERS + "change/", confirmed(page, 1), follow=True)
    assert "was changed successfully" in text_of(page)
    # This process has forgotten the range that it held.
    assert Order.objects.create().pk == "orders/2-A"
    assert "confirmed that every process" in histories("orders/A")[0]
    assert "from 32 to 1" in histories("orders/A")[0]
    told = changes[0]
    assert (told["change"], told["old"], told["new"]) == ("lowered", 32, 1)


def test_lowering_is_refused_while_higher_rows_exist(admin_client):
    Order.objects.create(id="orders/77-A")
    page = change(admin_client, 76, 77)
    error = "records.Order on 'default' has a row with the id 'orders/77-A'"
    assert error in page.context["adminform"].form.errors["max"][0]
    assert page.context["adminform"].form["max"].value() == "76"
    assert read_max("orders") == 77


@pytest.mark.parametrize("state", [None, "", "é", "0" * 64])
def test_a_confirmation_needs_the_state_that_it_showed(admin_client, state):
    reserve("orders", 100)
    data = confirmed(change(admin_client, 20, 100), 20)
    if state is None:
        del data["state"]
    else:
        data["state"] = state
    page = admin_client.post(ORDERS + "change/", data, follow=True)
    assert "was changed in the meantime" in text_of(page)
    assert read_max("orders") == 100


def test_no_model_to_look_at_is_said(admin_client):
    reserve("unused", 100)
    page = change(admin_client, 20, 100, LIST + "unused_2FA/")
    assert "No installed model uses this counter" in text_of(page)


# Other processes


RESERVE = """
from django_hilo.counters import reserve
import sys
print(reserve("orders", int(sys.argv[1])).range.high)
"""


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_raise_that_would_now_lower_is_told(admin_client, python):
    reserve("orders", 32)
    assert python(RESERVE, "100") == "132"
    page = change(admin_client, 50, 32)
    assert "is now 132 and cannot be lowered to 50" in text_of(page)
    assert page.context["adminform"].form["max"].value() == 132
    assert read_max("orders") == 132
    assert not histories("orders/A")


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_reservation_while_the_deletion_is_confirmed(admin_client, python):
    reserve("orders", 100)
    data = hidden_of(admin_client.get(ORDERS + "delete/")) | {"confirmed": "on"}
    python(RESERVE, "10")
    page = admin_client.post(ORDERS + "delete/", data, follow=True)
    assert "was changed in the meantime" in text_of(page)
    assert read_max("orders") == 110


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_locked_counter_is_told(admin_client, settings):
    # A lock of a row is not waited for again, a locked SQLite is.
    settings.HILO = settings.HILO | {"LOCK_TIMEOUT": 0.2, "RETRY_FOR": 0.1}
    reserve("orders", 32)
    with locked("django_hilo_hilodocument"):
        assert "locked" in text_of(change(admin_client, 500, 32))
        block = RESERVE_BLOCK | {"_selected_action": "orders/A", "size": 5}
        acted = admin_client.post(LIST, block, follow=True)
        assert "no block was reserved" in text_of(acted)
        data = hidden_of(admin_client.get(ORDERS + "delete/")) | {"confirmed": "on"}
        page = admin_client.post(ORDERS + "delete/", data, follow=True)
        assert "locked" in text_of(page)


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Somebody else holds the rows of a table, on SQLite the whole database."""
    if connection.vendor == "sqlite":
        execute("PRAGMA busy_timeout = 50")
        stranger: Any = sqlite3.connect(connection.settings_dict["NAME"])
        stranger.execute("BEGIN IMMEDIATE")
    else:
        stranger = connection.copy()
        stranger.set_autocommit(False)
        with stranger.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
    try:
        yield
    finally:
        stranger.rollback()
        stranger.close()
        connection.close()


# Delete


def test_delete_asks_first(admin_client, changes):
    reserve("orders", 32)
    shown = admin_client.get(ORDERS + "delete/")
    assert "The ids orders/1-A to orders/32-A could be given a second" in text_of(shown)
    data = hidden_of(shown)
    page = admin_client.post(ORDERS + "delete/", data, follow=True)
    assert "Stop every process first, then tick the box" in text_of(page)
    page = admin_client.post(
        ORDERS + "delete/", data | {"confirmed": "on"}, follow=True
    )
    assert "was deleted successfully" in text_of(page)
    assert not HiLoDocument.objects.exists()
    assert "Deleted at Max 32; confirmed" in histories("orders/A")[0]
    assert changes[0]["change"] == "deleted"


@pytest.mark.skipif(CHOSEN != "postgres", reason="the others' error is another kind")
def test_delete_without_the_right_to(admin_client):
    reserve("orders", 32)
    data = hidden_of(admin_client.get(ORDERS + "delete/")) | {"confirmed": "on"}
    execute("CREATE ROLE hilo_no_delete")
    execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO hilo_no_delete")
    execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO hilo_no_delete")
    execute("REVOKE DELETE ON django_hilo_hilodocument FROM hilo_no_delete")
    execute("SET LOCAL ROLE hilo_no_delete")
    page = admin_client.post(ORDERS + "delete/", data, follow=True)
    assert "ermission denied for table django_hilo_hilodocument" in text_of(page)
    assert HiLoDocument.objects.get().max == 32


def test_delete_is_refused_while_rows_exist(admin_client):
    order = Order.objects.create()
    page = admin_client.get(ORDERS + "delete/")
    assert f"a row with the id '{order.pk}'" in text_of(page)
    assert "_confirm" not in page.content.decode()
    assert f'<a href="{ORDERS}change/">Back</a>' in page.content.decode()
    assert "No, take me back" not in text_of(page)
    data = {"state": "x", "confirmed": "on"}
    page = admin_client.post(ORDERS + "delete/", data, follow=True)
    assert f"a row with the id '{order.pk}'" in text_of(page)
    assert HiLoDocument.objects.exists()


def test_counters_are_not_deleted_by_the_list(admin_client):
    reserve("orders", 32)
    data = {"action": "delete_selected", "_selected_action": "orders/A", "post": "yes"}
    page = admin_client.post(LIST, data, follow=True)
    assert "No action selected" in text_of(page)
    assert HiLoDocument.objects.exists()


# Actions


def test_raise_to_the_highest_id(admin_client, changes):
    reserve("orders", 32)
    reserve("users", 32)
    reserve("unused", 32)
    execute("INSERT INTO records_order (id, name) VALUES ('orders/90-A','')")
    selected = ["orders/A", "users/A", "unused/A"]
    page = admin_client.post(
        LIST, RAISE_TO_HIGHEST | {"_selected_action": selected}, follow=True
    )
    assert "“orders/A”: Raised Max from 32 to 90." in text_of(page)
    assert "“users/A”: nothing to do. Max is 32, the highest id is none" in text_of(
        page
    )
    assert "“unused/A”: no model uses it" in text_of(page)
    assert [read_max(name) for name in ("orders", "users", "unused")] == [90, 32, 32]
    assert histories("orders/A") == ["Raised Max from 32 to 90."]
    assert [told["change"] for told in changes] == ["raised"]


def test_raise_to_the_highest_id_refuses_an_absurd_one(admin_client):
    reserve("orders", 32)
    typed = "orders/9223372036854775000-A"
    execute("INSERT INTO records_order (id, name) VALUES (%s, '')", typed)
    data = RAISE_TO_HIGHEST | {"_selected_action": ["orders/A"]}
    page = text_of(admin_client.post(LIST, data, follow=True))
    assert (
        f"“orders/A”: the highest id is {typed}, more than 1,000,000,000 above" in page
    )
    assert read_max("orders") == 32
    assert histories("orders/A") == []


def test_reserve_a_block(admin_client, changes, admin_user):
    reserve("orders", 32)
    reserve("users", 10)
    selected = {"_selected_action": ["orders/A", "users/A"]}
    asked = admin_client.post(LIST, RESERVE_BLOCK | selected)
    assert "How many numbers" in text_of(asked)
    assert "orders/A 33 users/A 11" in text_of(asked)
    assert [read_max("orders"), read_max("users")] == [32, 10]
    data = {"action": "reserve_block", "size": 100} | selected
    done = admin_client.post(LIST, data)
    assert done.status_code == 302  # so that a reload reserves no more
    page = text_of(admin_client.get(done["Location"]))
    assert (
        "“orders/A”: the block 33 to 132 is yours, as ids orders/33-A to orders/132-A. "
        "Nobody else will ever get these numbers."
    ) in page
    assert "“users/A”: the block 11 to 110 is yours" in page
    assert [read_max("orders"), read_max("users")] == [132, 110]
    assert next_id(Order) == "orders/133-A"
    assert histories("orders/A") == [
        "Reserved the block 33 to 132 for manual use: orders/33-A to orders/132-A."
    ]
    told = changes[0]
    assert (told["change"], told["old"], told["new"]) == ("reserved", 32, 132)
    assert told["user"] == admin_user


def test_a_block_is_canceled(admin_client):
    reserve("orders", 32, using="other")
    selected = {"_selected_action": "orders/B"}
    query = "?database=other&amp;q=ord"
    page = admin_client.post(f"{LIST}?database=other&q=ord", RESERVE_BLOCK | selected)
    [link] = re.findall(r'<a href="([^"]*)"[^>]*>Cancel</a>', page.content.decode())
    assert link == query
    assert read_max("orders", "other") == 32


@pytest.mark.parametrize("size", ["0", "-1", "x", "", str(10**30), "1001"])
def test_a_block_has_bounds(admin_client, settings, size):
    settings.HILO = settings.HILO | {"MAX_FLOOR_JUMP": 1000}
    reserve("orders", 32)
    data = {"action": "reserve_block", "_selected_action": "orders/A", "size": size}
    page = admin_client.post(LIST, data)
    assert page.context["form"].errors["size"]
    assert read_max("orders") == 32


def test_a_counter_without_enough_numbers_gives_no_block(admin_client):
    data = {"collection": "full", "node_tag": "A", "max": MAX_NUMBER - 2}
    admin_client.post(LIST + "add/", data | {"database": "default"})
    data = {"action": "reserve_block", "_selected_action": "full/A", "size": "8"}
    page = admin_client.post(LIST, data, follow=True)
    assert "“full/A”: no block was reserved" in text_of(page)
    page = admin_client.get(LIST + "full_2FA/change/")
    assert f"full/{MAX_NUMBER - 1}-A to full/{MAX_NUMBER}-A" in text_of(page)


def test_an_action_whose_database_fails_is_not_called_a_filter(
    admin_client, monkeypatch
):
    reserve("orders", 32)

    def lost(*args: object, **kwargs: object) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr("django_hilo._operations.lending.lend", lost)
    data = {"action": "reserve_block", "_selected_action": "orders/A", "size": "8"}
    page = text_of(admin_client.post(LIST, data, follow=True))
    assert "An error stopped this: the connection was lost. What was done" in page


# Safety


def test_changes_need_the_csrf_token(admin_user):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    reserve("orders", 32)
    block = {"action": "reserve_block", "_selected_action": "orders/A", "size": "8"}
    for url, data in [
        (ORDERS + "change/", {"max": 50, "initial-max": 32}),
        (ORDERS + "delete/", {"confirmed": "on", "state": "x"}),
        (LIST + "add/", {"collection": "new", "node_tag": "A", "max": 1}),
        (LIST, block),
    ]:
        assert client.post(url, data).status_code == 403
    assert read_max("orders") == 32


def test_getting_a_page_changes_nothing(admin_client):
    reserve("orders", 32)
    before = HiLoDocument.objects.values().get()
    for url in [
        ORDERS + "change/?max=500&initial-max=32&confirmed=on",
        ORDERS + "delete/?confirmed=on&state=x",
        LIST + "?action=reserve_block&_selected_action=orders/A&size=8",
    ]:
        admin_client.get(url, follow=True)
    assert HiLoDocument.objects.values().get() == before


def test_texts_of_others_are_escaped(admin_client):
    evil = "<script>alert(1)</script>"
    ServerPrefix.objects.create(node_tag="A", prefix=evil)
    HiLoDocument.objects.bulk_create(
        [HiLoDocument(id=f"{evil}/A", collection=evil, node_tag="A", max=9, low=1)]
    )
    url = f"{LIST}{quote(evil + '/A')}/"
    selected = {"_selected_action": f"{evil}/A"}
    for page in [
        admin_client.get(LIST),
        admin_client.get(url + "change/?highest=1"),
        admin_client.get(url + "delete/"),
        admin_client.post(url + "change/", {"max": 5, "initial-max": 9}),
        admin_client.post(LIST, RESERVE_BLOCK | selected),
        admin_client.post(LIST, RAISE_TO_HIGHEST | selected, follow=True),
        admin_client.get(LIST + f"?database={evil}", follow=True),
        admin_client.get("/admin/django_hilo/serverprefix/"),
        admin_client.get("/admin/django_hilo/serverprefix/A/change/"),
        admin_client.get("/admin/django_hilo/serverprefix/add/"),
    ]:
        assert page.status_code == 200
        assert evil not in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_old_max_is_the_one_under_the_lock(admin_client, python):
    reserve("orders", 200)
    python(RESERVE, "10")
    change(admin_client, 500, 200)
    assert python(RESERVE, "1") == "501"
    assert histories("orders/A") == ["Raised Max from 210 to 500."]


# What only SQL can do


@pytest.mark.parametrize("using", ["default", "other"])
def test_a_collection_with_a_colon_can_be_opened(admin_client, using):
    row = HiLoDocument(id="a:b/A", collection="a:b", node_tag="A", max=5)
    HiLoDocument.objects.using(using).bulk_create([row])
    listed = admin_client.get(LIST + f"?database={using}")
    assert "a:b A 5" in text_of(listed)
    [url] = re.findall(r'href="([^"]+3Ab_2FA/change/[^"]*)"', listed.content.decode())
    page = admin_client.get(url)
    assert page.status_code == 200
    assert "a:b" in text_of(page)
