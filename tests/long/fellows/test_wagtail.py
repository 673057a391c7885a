import html
import json

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse
from wagtail.models import Locale, Page, Revision

from django_hilo.identifiers import parse
from tests.long.fellows.market.models import Advert, AdvertPage, Link

pytestmark = pytest.mark.django_db


def url(name, *arguments):
    return reverse(f"wagtailsnippets_market_advert:{name}", args=arguments)


@pytest.fixture
def advert():
    advert = Advert.objects.create(text="Drink tea")
    assert advert.pk == "adverts/1-A"
    return advert


@pytest.fixture
def root():
    """The page that Wagtail's migrations make, also where none have run."""
    Locale.objects.get_or_create(language_code="en")
    return Page.get_first_root_node() or Page.add_root(title="Root", slug="root")


@pytest.fixture
def page(advert, root):
    page = AdvertPage(title="Tea", advert=advert)
    page.links = [Link(text="first"), Link(text="second")]
    root.add_child(instance=page)
    return page


def get(client, address, **data):
    answer = client.get(address, data)
    assert answer.status_code == 200, (address, answer.status_code)
    return html.unescape(answer.content.decode())


def test_snippets_are_listed_changed_and_deleted(admin_client, advert):
    edit = url("edit", quote(advert.pk))
    assert edit in get(admin_client, url("list"))
    assert "Drink tea" in get(admin_client, edit)
    answer = admin_client.post(edit, {"text": "Drink coffee", "action-publish": "1"})
    assert answer.status_code == 302, answer.context["form"].errors
    advert.refresh_from_db()
    assert advert.text == "Drink coffee"
    for name in ("history", "usage"):
        get(admin_client, url(name, quote(advert.pk)))
    answer = admin_client.post(url("delete", quote(advert.pk)))
    assert answer.status_code == 302
    assert not Advert.objects.exists()


def test_a_snippet_is_added(admin_client):
    get(admin_client, url("add"))
    answer = admin_client.post(url("add"), {"text": "New", "action-publish": "1"})
    assert answer.status_code == 302
    assert Advert.objects.get().pk == "adverts/1-A"  # no id was spent by the form


def test_drafts_and_revisions(advert):
    advert.text = "Draft"
    revision = advert.save_revision()
    assert revision.object_id == "adverts/1-A"
    advert.refresh_from_db()
    assert advert.text == "Drink tea"
    assert advert.latest_revision.as_object().pk == advert.pk
    advert.latest_revision.publish()
    advert.refresh_from_db()
    assert advert.text == "Draft"
    assert Revision.objects.for_instance(advert).count() == 1


def test_the_chooser(admin_client, advert):
    Advert.objects.create(text="Other")
    names = "wagtailsnippetchoosers_market_advert"
    chosen = reverse(f"{names}:chosen", args=[quote(advert.pk)])
    modal = json.loads(get(admin_client, reverse(f"{names}:choose")))
    assert chosen in modal["html"]
    answer = json.loads(get(admin_client, chosen))
    assert answer["step"] == "chosen"
    assert answer["result"]["id"] == advert.pk
    assert answer["result"]["edit_url"] == url("edit", quote(advert.pk))
    several = reverse(f"{names}:chosen_multiple")
    ids = ["adverts/1-A", "adverts/2-A"]
    results = json.loads(get(admin_client, several, id=ids))["result"]
    assert {each["id"] for each in results} == set(ids)


def test_a_page_with_a_snippet_and_children_of_ours(admin_client, page, advert):
    assert [link.pk for link in page.links.all()] == ["links/1-A", "links/2-A"]
    edit = reverse("wagtailadmin_pages:edit", args=[page.pk])
    assert f'value="{advert.pk}"' in get(admin_client, edit)
    other = Advert.objects.create(text="Other")
    form = {
        "title": "Coffee",
        "slug": "coffee",
        "advert": other.pk,
        "links-TOTAL_FORMS": 3,
        "links-INITIAL_FORMS": 2,
        "links-MIN_NUM_FORMS": 0,
        "links-MAX_NUM_FORMS": 1000,
        "links-0-id": "links/1-A",
        "links-0-text": "changed",
        "links-0-ORDER": 1,
        "links-1-id": "links/2-A",
        "links-1-text": "second",
        "links-1-ORDER": 2,
        "links-1-DELETE": "on",
        "links-2-id": "",
        "links-2-text": "third",
        "links-2-ORDER": 3,
        "comments-TOTAL_FORMS": 0,
        "comments-INITIAL_FORMS": 0,
        "action-publish": "1",
    }
    answer = admin_client.post(edit, form)
    assert answer.status_code == 302, answer.context["form"].errors
    page = AdvertPage.objects.get()
    assert page.advert == other
    texts = {link.pk: link.text for link in page.links.all()}
    assert texts.pop("links/1-A") == "changed"
    (added,) = texts
    assert texts[added] == "third"
    assert parse(added).number > 2


def test_a_copy_of_a_page_has_children_with_ids_of_their_own(page):
    copy = page.copy(update_attrs={"slug": "copy", "title": "Copy"})
    numbers = [parse(link.pk).number for link in Link.objects.all()]
    assert len(set(numbers)) == 4
    assert {link.text for link in copy.links.all()} == {"first", "second"}
    assert page.links.count() == 2
