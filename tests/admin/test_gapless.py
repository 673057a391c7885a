"""The admin of gapless counters."""

from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.auth.models import User as Account
from django.test import Client

from django_hilo.counters import next_gapless_number, seed_gapless_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter
from django_hilo.signals import counter_changed
from tests.admin.test_counters import histories, locked, text_of
from tests.apps.records.models import Letter

pytestmark = pytest.mark.django_db(databases=["default", "other"])

LIST = "/admin/django_hilo/gaplesscounter/"
USERS = LIST + "users/change/"
OTHERS = LIST + "other_3Ausers/change/"


@pytest.fixture
def changes(heard: Any) -> list[Any]:
    names = ("using", "collection", "change", "old", "new", "user")
    return heard(counter_changed, *names, sender=GaplessCounter)


def change(client: Client, new: object, seen: object, url: str = USERS) -> Any:
    data = {"last": new, "initial-last": seen, "confirmed": new, "_save": "Save"}
    return client.post(url, data, follow=True)


def last_of(collection: str = "users", using: str = "default") -> int:
    return GaplessCounter.objects.using(using).get(pk=collection).last


def errors_of(page: Any) -> list[str]:
    form = page.context["adminform"].form
    return [error for errors in form.errors.values() for error in errors]


# The list


def test_the_list_shows_each_counter(admin_client):
    seed_gapless_number("orderlines", 1_234_567)
    Letter.objects.create()
    seed_gapless_number("full", MAX_NUMBER)
    page = text_of(admin_client.get(LIST))
    assert "OrderLines 1,234,567 OrderLines/1234568 records.OrderLine" in page
    assert "letters 1 letters/2 records.Letter" in page
    assert f"full {MAX_NUMBER:,} none: this counter has reached 2^63-1 no model" in page
    assert "Database: default" in page


def test_search_and_order(admin_client):
    for name, last in [("orders", 5), ("users", 50), ("invoices", 7)]:
        seed_gapless_number(name, last)

    def listed(query: str) -> list[str]:
        rows = admin_client.get(LIST + query).context["cl"].result_list
        return [row.collection for row in rows]

    assert listed("?q=ORD") == ["orders"]
    assert listed("?o=-1") == ["users", "invoices", "orders"]


def test_each_database_has_a_list(admin_client, settings):
    """Also where one home holds all HiLo counters: gapless ones are with the rows."""
    settings.HILO = {"DATABASE": "default"}
    seed_gapless_number("users", 3)
    seed_gapless_number("users", 7, "other")
    page = admin_client.get(LIST + "?database=other")
    assert "users 7 users/8" in text_of(page)
    assert OTHERS in page.content.decode()
    assert "Database: other" in text_of(page)


# Change


def test_raise(admin_client, admin_user, changes):
    seed_gapless_number("users", 5)
    page = change(admin_client, 1990, 5)
    assert "was changed successfully" in text_of(page)
    assert next_gapless_number("users") == 1991
    assert histories("users") == ["Raised the last number from 5 to 1,990."]
    assert changes == [("default", "users", "raised", 5, 1990, admin_user)]


@pytest.mark.parametrize("confirmed", ["", "1991", "yes"])
def test_a_raise_is_asked_for_since_it_leaves_a_gap(admin_client, changes, confirmed):
    seed_gapless_number("users", 5)
    data = {"last": 1990, "initial-last": 5, "confirmed": confirmed}
    page = admin_client.post(USERS, data)
    gap, way_back = map(unescape, errors_of(page))
    assert gap == "The numbers 6 to 1,990 will never be assigned: a gap."
    assert "seed_gapless_number('users', 5, force=True)" in way_back
    assert "Nothing was changed yet" in text_of(page)
    assert "Skip these numbers" in text_of(page)
    assert (last_of(), changes) == (5, [])


def test_the_page_shows_what_comes_next(admin_client):
    seed_gapless_number("orderlines", 1234)
    page = admin_client.get(LIST + "orderlines/change/")
    assert "OrderLines/1235" in text_of(page)
    assert 'name="initial-last" value="1234"' in page.content.decode()


def test_a_change_touches_the_database_that_its_page_named(admin_client, changes):
    seed_gapless_number("users", 5)
    seed_gapless_number("users", 6, "other")
    page = change(admin_client, 50, 6, OTHERS)
    assert "Database: other" in text_of(page)
    assert (last_of(), last_of(using="other")) == (5, 50)
    assert histories("other:users") == ["Raised the last number from 6 to 50."]
    assert changes[0][:5] == ("other", "users", "raised", 6, 50)


def test_lowering_is_refused_and_names_the_way(admin_client, changes):
    seed_gapless_number("users", 1990)
    page = change(admin_client, 1975, 1990)
    (error,) = errors_of(page)
    assert "seed_gapless_number('users', 1975, force=True)" in unescape(error)
    assert page.context["adminform"].form["last"].value() == "1975"
    assert last_of() == 1990
    assert changes == []
    assert not LogEntry.objects.exists()


def test_saving_what_was_there_changes_nothing(admin_client, changes):
    seed_gapless_number("users", 5)
    page = change(admin_client, 5, 5).content.decode()
    assert "The number was not changed." in page
    assert "successfully" not in page
    assert last_of() == 5
    assert histories("users") == ["No fields changed."]
    assert changes == []


def test_a_number_taken_while_the_page_was_open_is_not_taken_back(
    admin_client, changes
):
    seed_gapless_number("users", 5)
    for _ in range(4):
        next_gapless_number("users")
    page = change(admin_client, 7, 5)
    assert "The last number of 'users' on 'default' is 9 by now" in text_of(page)
    assert last_of() == 9
    assert not LogEntry.objects.exists()
    change(admin_client, 5, 5)
    assert last_of() == 9
    change(admin_client, 12, 5)
    assert next_gapless_number("users") == 13
    assert changes[0][2:5] == ("raised", 9, 12)
    assert histories("users")[-1] == "Raised the last number from 9 to 12."


@pytest.mark.parametrize("number", ["-1", "x", "", str(2**63), "9" * 5000, "1.5"])
def test_what_is_no_number_is_refused(admin_client, number):
    seed_gapless_number("users", 5)
    assert len(errors_of(change(admin_client, number, 5))) == 1
    assert last_of() == 5


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_locked_counter_is_told(admin_client, settings):
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.2}
    seed_gapless_number("users", 5)
    with locked(GaplessCounter._meta.db_table):
        page = text_of(change(admin_client, 500, 5))
    assert "locked" in page or "LOCK_TIMEOUT" in page


# Add


def test_add_starts_a_counter(admin_client, admin_user, changes):
    data = {"database": "default", "collection": "Users", "last": 1990}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "was added successfully" in text_of(page)
    assert next_gapless_number("users") == 1991
    assert histories("users") == ["Started after 1,990."]
    assert changes == [("default", "users", "raised", 0, 1990, admin_user)]


def test_add_on_another_database(admin_client):
    form = admin_client.get(LIST + "add/?_changelist_filters=database%3Dother")
    assert form.context["adminform"].form["database"].initial == "other"
    data = {"database": "other", "collection": "users", "last": 7}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "Database: other" in text_of(page)
    assert last_of(using="other") == 7
    assert histories("other:users") == ["Started after 7."]
    assert not GaplessCounter.objects.exists()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"collection": "USERS"}, "“users” exists on “default” already"),
        ({"collection": "3rd"}, "must start with a letter"),
        ({"last": -1}, "greater than or equal to 0"),
        ({"last": 2**63}, f"less than or equal to {MAX_NUMBER}"),
        ({"database": "nowhere"}, "Select a valid choice"),
    ],
)
def test_add_refuses(admin_client, changes, given, error):
    seed_gapless_number("users", 5)
    data = {"database": "default", "collection": "new", "last": 9} | given
    page = admin_client.post(LIST + "add/", data)
    assert error in text_of(page)
    assert list(GaplessCounter.objects.values_list("pk", "last")) == [("users", 5)]
    assert changes == []


# Who may


def client_with(*permissions: str) -> Client:
    client = Client()
    account = Account.objects.create(username="somebody", is_staff=True)
    for name in permissions:
        code = f"{name}_gaplesscounter"
        account.user_permissions.add(Permission.objects.get(codename=code))
    client.force_login(account)
    return client


@pytest.mark.parametrize(
    ("permissions", "listed", "changed", "added"),
    [
        ([], 403, 403, 403),
        (["view"], 200, 403, 403),
        (["change"], 200, 302, 403),
        (["add"], 403, 403, 302),
        (["delete"], 403, 403, 403),
    ],
)
def test_permissions(permissions, listed, changed, added):
    seed_gapless_number("users", 5)
    client = client_with(*permissions)
    assert client.get(LIST).status_code == listed
    data = {"last": 9, "initial-last": 5, "confirmed": 9}
    assert client.post(USERS, data).status_code == changed
    assert last_of() == (9 if changed == 302 else 5)
    new = {"database": "default", "collection": "new", "last": 3}
    assert client.post(LIST + "add/", new).status_code == added


def test_who_may_only_view_sees_the_last_number():
    seed_gapless_number("users", 123_456)
    page = client_with("view").get(USERS).content.decode()
    assert "123,456" in page
    assert 'name="last"' not in page


def test_nobody_deletes(admin_client):
    seed_gapless_number("users", 5)
    assert "deletelink" not in admin_client.get(USERS).content.decode()
    url = LIST + "users/delete/"
    assert admin_client.post(url, {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": "users", "post": "yes"}
    admin_client.post(LIST, data)
    assert last_of() == 5
