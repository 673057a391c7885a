"""Who may do what in the admin: one line a person, one column a view or action."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.auth.models import User as Account
from django.test import Client

from django_hilo._operations.edit_counter import state_of
from django_hilo.counters import read_max, reserve
from django_hilo.models import HiLoDocument, ServerPrefix
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(databases=["default", "other"])

COUNTERS = "/admin/django_hilo/hilodocument/"
PREFIXES = "/admin/django_hilo/serverprefix/"

# yes: done; see: shown, but not to be changed; no: 403, or not offered; log: sent to
# the login. "take" is take_hilo_ids.
MATRIX = """
                        list  page  highest hist  add   raise lower delete to-high block
anonymous               log   log   log     log   log   log   log   log    log     log
user                    log   log   log     log   log   log   log   log    log     log
staff                   no    no    no      no    no    no    no    no     no      no
view                    yes   see   yes     yes   no    no    no    no     no      no
change                  yes   yes   yes     yes   no    yes   yes   no     yes     no
add                     no    no    no      no    yes   no    no    no     no      no
delete                  no    no    no      no    no    no    no    yes    no      no
take                    no    no    no      no    no    no    no    no     no      no
view+change             yes   yes   yes     yes   no    yes   yes   no     yes     no
view+add                yes   see   yes     yes   yes   no    no    no     no      no
view+delete             yes   see   yes     yes   no    no    no    yes    no      no
view+take               yes   see   yes     yes   no    no    no    no     no      yes
change+take             yes   yes   yes     yes   no    yes   yes   no     yes     yes
view+change+delete+take yes   yes   yes     yes   no    yes   yes   yes    yes     yes
superuser               yes   yes   yes     yes   yes   yes   yes   yes    yes     yes
"""


PREFIX_MATRIX = """
                        list  page  history add   set   delete delete-selected
anonymous               log   log   log     log   log   log    log
user                    log   log   log     log   log   log    log
staff                   no    no    no      no    no    no     no
view                    yes   see   yes     no    no    no     no
change                  yes   yes   yes     no    yes   no     no
add                     no    no    no      yes   no    no     no
delete                  no    no    no      no    no    yes    no
view+delete             yes   see   yes     no    no    yes    yes
view+add                yes   see   yes     yes   no    no     no
take                    no    no    no      no    no    no     no
superuser               yes   yes   yes     yes   yes   yes    yes
"""


def cells(matrix: str) -> list[Any]:
    head, *lines = matrix.strip("\n").splitlines()
    return [
        pytest.param(who, what, outcome, id=f"{who} {what} {outcome}")
        for who, *outcomes in (line.split() for line in lines)
        for what, outcome in zip(head.split(), outcomes, strict=True)
    ]


def client_of(who: str, model: str) -> Client:
    client = Client()
    if who == "anonymous":
        return client
    account = Account.objects.create(
        username="somebody", is_staff=who != "user", is_superuser=who == "superuser"
    )
    if who not in ("user", "staff", "superuser"):
        for name in who.split("+"):
            code = "take_hilo_ids" if name == "take" else f"{name}_{model}"
            account.user_permissions.add(Permission.objects.get(codename=code))
    client.force_login(account)
    return client


def outcome_of_page(response: Any) -> str:
    if response.status_code == 302 and "/login/" in response["Location"]:
        return "log"
    if response.status_code == 403:
        return "no"
    assert response.status_code == 200, response
    form = response.context.get("adminform")
    if form is not None and not form.form.fields:
        assert b'type="submit" value="Save' not in response.content
        return "see"
    return "yes"


def outcome_of_change(response: Any, is_done: bool) -> str:
    """What became of a POST; a list that does not offer an action says so."""
    if response.status_code == 302 and "/login/" in response["Location"]:
        assert not is_done
        return "log"
    if response.status_code == 302 and is_done:
        return "yes"
    if response.status_code == 200:  # without any action: the list as it is
        assert "cl" in response.context
    else:
        assert response.status_code in (302, 403), response
    assert not is_done
    return "no"


def changed(url: str, data: dict[str, Any], is_done: Callable[[], bool]) -> Any:
    def act(client: Client) -> str:
        return outcome_of_change(client.post(url, data), is_done())

    return act


def shown(url: str) -> Any:
    return lambda client: outcome_of_page(client.get(url))


ORDERS = COUNTERS + "orders_2FA/"


def counter_views(what: str) -> Any:
    confirmed = {"confirmed": "on", "state": state_of(HiLoDocument.objects.get())}
    lower = {"max": 20, "initial-max": 32} | confirmed | {"confirmed": "20"}
    new = {"database": "default", "collection": "new", "node_tag": "A", "max": 1}
    selected = {"_selected_action": "orders/A"}
    block = {"action": "reserve_block", "size": 5} | selected
    return {
        "list": shown(COUNTERS),
        "page": shown(ORDERS + "change/"),
        "hist": shown(ORDERS + "history/"),
        "highest": highest,
        "add": changed(
            COUNTERS + "add/",
            new,
            lambda: HiLoDocument.objects.filter(collection="new").exists(),
        ),
        "raise": changed(
            ORDERS + "change/",
            {"max": 50, "initial-max": 32},
            lambda: read_max("orders") == 50,
        ),
        "lower": changed(ORDERS + "change/", lower, lambda: read_max("orders") == 20),
        "delete": changed(
            ORDERS + "delete/", confirmed, lambda: not HiLoDocument.objects.exists()
        ),
        "to-high": to_highest,
        "block": changed(COUNTERS, block, lambda: read_max("orders") == 37),
    }[what]


def highest(client: Client) -> str:
    response = client.get(ORDERS + "change/?highest=1")
    outcome = outcome_of_page(response)
    if outcome not in ("yes", "see"):
        return outcome
    assert "records.Order (default)" in response.content.decode()
    return "yes"


def to_highest(client: Client) -> str:
    execute("INSERT INTO records_order (id, name) VALUES ('orders/90-A','')")
    data = {"action": "raise_to_highest", "_selected_action": "orders/A"}
    act = changed(COUNTERS, data, lambda: read_max("orders") == 90)
    return str(act(client))


@pytest.mark.parametrize(("who", "what", "outcome"), cells(MATRIX))
def test_counters(who, what, outcome):
    reserve("orders", 32)
    client = client_of(who, "hilodocument")
    assert counter_views(what)(client) == outcome


def prefix_views(what: str) -> Any:
    rows = ServerPrefix.objects
    new = {"database": "default", "node_tag": "Z", "prefix": "South/"}
    selected = {"action": "delete_selected", "_selected_action": "A", "post": "yes"}
    return {
        "list": shown(PREFIXES),
        "page": shown(PREFIXES + "A/change/"),
        "history": shown(PREFIXES + "A/history/"),
        "add": changed(
            PREFIXES + "add/", new, lambda: rows.filter(node_tag="Z").exists()
        ),
        "set": changed(
            PREFIXES + "A/change/",
            {"prefix": "East/"},
            lambda: rows.get().prefix == "East/",
        ),
        "delete": changed(
            PREFIXES + "A/delete/", {"post": "yes"}, lambda: not rows.exists()
        ),
        "delete-selected": changed(PREFIXES, selected, lambda: not rows.exists()),
    }[what]


@pytest.mark.parametrize(("who", "what", "outcome"), cells(PREFIX_MATRIX))
def test_prefixes(who, what, outcome):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    client = client_of(who, "serverprefix")
    assert prefix_views(what)(client) == outcome


def test_who_may_only_view_is_offered_nothing_else():
    reserve("orders", 32)
    client = client_of("view", "hilodocument")
    page = client.get(ORDERS + "change/").content.decode()
    assert "deletelink" not in page
    assert "_save" not in page
    assert 'name="max"' not in page
    page = client.get(COUNTERS).content.decode()
    assert "addlink" not in page
    assert 'name="action"' not in page
