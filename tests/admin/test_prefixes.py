from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

import django_hilo
from django_hilo.counters import reserve
from django_hilo.generator import next_id
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.signals import counter_changed
from tests.admin.test_counters import histories, text_of
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(databases=["default", "other"])

LIST = "/admin/django_hilo/serverprefix/"
STATIC = Path(django_hilo.__file__).parent / "static/django_hilo"


@pytest.fixture
def changes() -> Any:
    seen: list[tuple[Any, ...]] = []

    def note(sender: Any, signal: Any, **told: Any) -> None:
        assert sender is ServerPrefix
        names = ("using", "node_tag", "change", "old", "new")
        seen.append(tuple(told[name] for name in names))

    counter_changed.connect(note)
    yield seen
    counter_changed.disconnect(note)


def preview_of(page: Any) -> dict[str, Any]:
    """What the page gives to the script of the preview."""
    found = re.search(r'<input[^>]*name="prefix"[^>]*>', page.content.decode())
    assert found
    pairs = re.findall(r'data-hilo-([a-z-]+)="([^"]*)"', found[0])
    return {name: html.unescape(value) for name, value in pairs}


def test_the_list_shows_what_the_next_id_looks_like(admin_client, settings):
    reserve("orders", 32)
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    ServerPrefix.objects.create(node_tag="ZZ", prefix="South.")
    page = text_of(admin_client.get(LIST))
    assert "A North/ orders/North/33-A" in page
    assert "ZZ South. orders/South.1-ZZ" in page
    settings.HILO = {"SEPARATOR": ":", "SHOW_NODE_TAG": False}
    assert "A North/ orders:North/33 " in text_of(admin_client.get(LIST))


def test_the_example_is_of_the_counter_in_use(admin_client):
    reserve("users", 10)
    HiLoDocument.objects.create(collection="a-manual-one", node_tag="A", max=5)
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    assert "users/North/11-A" in text_of(admin_client.get(LIST))


def test_the_list_costs_the_same_for_each_length(
    admin_client, django_assert_max_num_queries
):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    with django_assert_max_num_queries(100) as one:
        admin_client.get(LIST)
    for tag in "BCDEFGHIJK":
        ServerPrefix.objects.create(node_tag=tag, prefix=f"{tag}/")
        reserve("orders", 1, node_tag=tag)
    with django_assert_max_num_queries(len(one)):
        admin_client.get(LIST)


def test_add(admin_client, changes):
    reserve("orders", 32)
    data = {"database": "default", "node_tag": "A", "prefix": "North/"}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "was added successfully" in text_of(page)
    assert changes == [("default", "A", "set", None, "North/")]
    assert histories("A") == ["Added."]
    assert next_id(Order) == "orders/North/33-A"


def test_add_on_the_other_database(admin_client, changes):
    ServerPrefix.objects.create(node_tag="B", prefix="North/")
    data = {"database": "other", "node_tag": "B", "prefix": "South/"}
    page = admin_client.post(LIST + "add/", data, follow=True)
    assert "Database: other" in text_of(page)
    assert changes == [("other", "B", "set", None, "South/")]
    assert histories("other:B") == ["Added."]
    assert ServerPrefix.objects.get().prefix == "North/"
    assert next_id(Order, "other") == "orders/South/1-B"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"prefix": "North1"}, "must end in a character that is no digit"),
        ({"prefix": "No rth/"}, "hold no space"),
        ({"prefix": "No$rth/"}, "must end in"),
        ({"prefix": "N" * 33}, "at most 32 characters"),
        ({"node_tag": "a"}, "must be 1 to 4 upper-case letters"),
        ({"node_tag": ""}, "This field is required"),
        ({"node_tag": "Z"}, "The node “Z” has a prefix on “other” already"),
        ({"database": "nowhere"}, "Select a valid choice"),
    ],
)
def test_add_refuses(admin_client, given, error):
    ServerPrefix.objects.using("other").create(node_tag="Z", prefix="South/")
    data = {"database": "other", "node_tag": "A", "prefix": "North/"} | given
    page = admin_client.post(LIST + "add/", data)
    assert error in text_of(page)
    assert not ServerPrefix.objects.exists()
    assert ServerPrefix.objects.using("other").count() == 1


def test_change_touches_the_database_that_its_page_named(admin_client, changes):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    ServerPrefix.objects.using("other").create(node_tag="A", prefix="South/")
    url = LIST + "other_3AA/change/"
    page = admin_client.get(url)
    assert "Holds from each process's next range on" in text_of(page)
    assert 'name="node_tag"' not in page.content.decode()
    page = admin_client.post(url, {"prefix": "East/", "node_tag": "Z"}, follow=True)
    assert "Database: other" in text_of(page)
    assert ServerPrefix.objects.get().prefix == "North/"
    assert list(ServerPrefix.objects.using("other").values_list()) == [("A", "East/")]
    assert changes == [("other", "A", "set", "South/", "East/")]
    assert histories("other:A") == ["Changed Server prefix."]
    history = text_of(admin_client.get(LIST + "other_3AA/history/"))
    assert "Changed Server prefix." in history


def test_change_refuses_what_is_outside_the_grammar(admin_client):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    page = admin_client.post(LIST + "A/change/", {"prefix": "North1"})
    assert "must end in a character that is no digit" in text_of(page)
    assert 'value="North1"' in page.content.decode()
    assert ServerPrefix.objects.get().prefix == "North/"


def test_an_empty_prefix_is_one(admin_client, changes):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    admin_client.post(LIST + "A/change/", {"prefix": ""})
    assert ServerPrefix.objects.get().prefix == ""
    assert changes == [("default", "A", "set", "North/", "")]


def test_delete(admin_client, changes):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    ServerPrefix.objects.using("other").create(node_tag="A", prefix="South/")
    page = admin_client.get(LIST + "other_3AA/delete/")
    assert "Ids of these nodes have no prefix from the next range on" in text_of(page)
    admin_client.post(LIST + "other_3AA/delete/", {"post": "yes"})
    assert ServerPrefix.objects.get().prefix == "North/"
    assert not ServerPrefix.objects.using("other").exists()
    assert changes == [("other", "A", "deleted", "South/", None)]
    assert LogEntry.objects.get().object_id == "other:A"


def test_delete_selected(admin_client, changes):
    for using in ("default", "other"):
        for tag in "AB":
            ServerPrefix.objects.using(using).create(node_tag=tag, prefix=f"{tag}/")
    url = LIST + "?database=other"
    data = {"action": "delete_selected", "_selected_action": ["A", "B"]}
    page = admin_client.post(url, data | {"index": 0})
    assert "Ids of these nodes have no prefix from the next range on" in text_of(page)
    assert LIST + "other_3AA/change/" in page.content.decode()
    admin_client.post(url, data | {"post": "yes"}, follow=True)
    assert ServerPrefix.objects.count() == 2
    assert not ServerPrefix.objects.using("other").exists()
    assert sorted(changes) == [
        ("other", "A", "deleted", "A/", None),
        ("other", "B", "deleted", "B/", None),
    ]
    ids = LogEntry.objects.values_list("object_id", flat=True)
    assert sorted(ids) == ["other:A", "other:B"]


# The preview; the script itself is run by the browser tests.


def test_the_script_gets_what_it_needs(admin_client, settings):
    reserve("OrderLines", 2)
    reserve("orders", 5, using="other", node_tag="Q")
    page = admin_client.get(LIST + "add/")
    assert "django_hilo/server_prefix_preview.js" in page.content.decode()
    preview = preview_of(page)
    assert json.loads(preview["examples"]) == {
        "default": {"": ["orders/", "1"], "A": ["OrderLines/", "3"]},
        "other": {"": ["orders/", "1"], "Q": ["orders/", "6"]},
    }
    assert (preview["database"], preview["node-tag"]) == ("default", "")
    assert preview["show-node-tag"] == "yes"
    ServerPrefix.objects.using("other").create(node_tag="Q", prefix="North/")
    settings.HILO = {"SHOW_NODE_TAG": False, "SEPARATOR": ":"}
    preview = preview_of(admin_client.get(LIST + "other_3AQ/change/"))
    assert list(json.loads(preview["examples"])) == ["other"]
    assert json.loads(preview["examples"])["other"]["Q"] == ["orders:", "6"]
    assert (preview["database"], preview["node-tag"]) == ("other", "Q")
    assert preview["show-node-tag"] == "no"


@pytest.mark.parametrize("name", ["max_preview.js", "server_prefix_preview.js"])
def test_the_scripts_keep_to_a_strict_policy(name):
    script = (STATIC / name).read_text()
    assert not re.search(r"eval|innerHTML|Function\(|\.style|setAttribute", script)
