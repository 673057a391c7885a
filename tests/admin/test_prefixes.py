from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from django_hilo.counters import reserve
from django_hilo.generator import next_id
from django_hilo.models import ServerPrefix
from django_hilo.signals import counter_changed
from tests.admin.test_counters import histories, text_of
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(databases=["default", "other"])

LIST = "/admin/django_hilo/serverprefix/"


@pytest.fixture
def changes(heard: Any) -> list[Any]:
    names = ("using", "node_tag", "change", "old", "new")
    return heard(counter_changed, *names, sender=ServerPrefix)


def test_the_list_shows_what_ids_look_like(admin_client, settings):
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    ServerPrefix.objects.create(node_tag="ZZ", prefix="South.")
    page = text_of(admin_client.get(LIST))
    assert "A North/ orders/North/33-A" in page
    assert "ZZ South. orders/South.33-ZZ" in page
    settings.HILO = {"SEPARATOR": ":", "SHOW_NODE_TAG": False}
    assert "A North/ orders:North/33 " in text_of(admin_client.get(LIST))


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
        ({"prefix": "North1"}, "must not end in a digit"),
        ({"prefix": "No rth/"}, "contain a space"),
        ({"prefix": "No$rth/"}, "must not end in"),
        ({"prefix": "N" * 33}, "at most 32 characters"),
        ({"node_tag": "a"}, "must be 1 to 4 upper-case letters"),
        ({"node_tag": ""}, "This field is required"),
        ({"node_tag": "Z"}, "“Z” exists on “other” already"),
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
    assert "Applies from the next range on" in text_of(page)
    assert 'name="node_tag"' not in page.content.decode()
    page = admin_client.post(url, {"prefix": "East/", "node_tag": "Z"}, follow=True)
    assert "Database: other" in text_of(page)
    assert ServerPrefix.objects.get().prefix == "North/"
    assert list(ServerPrefix.objects.using("other").values_list()) == [("A", "East/")]
    assert changes == [("other", "A", "set", "South/", "East/")]
    assert histories("other:A") == ["Changed Server prefix."]
    history = text_of(admin_client.get(LIST + "other_3AA/history/"))
    assert "Changed Server prefix." in history


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
