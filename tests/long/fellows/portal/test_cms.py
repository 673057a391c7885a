"""Pages of django-cms that show and extend objects with HiLo keys."""

import pytest
from cms.api import add_plugin, assign_user_to_page, create_page, create_page_user
from cms.models import PageUser
from cms.toolbar.utils import get_object_edit_url
from cms.utils.page_permissions import user_can_change_page
from cms.utils.placeholder import get_placeholder_from_slot
from django.conf import settings
from django.contrib.admin.utils import quote

from tests.long.fellows.portal.pages.models import Offer, OfferPlugin, Price, Story
from tests.long.fellows.portal.people.models import Member

pytestmark = pytest.mark.django_db

TEXT = settings.HILO_TEST_KEYS == "text"


@pytest.fixture
def editor():
    return Member.objects.create_superuser("ann", "ann@example.org", "secret")


@pytest.fixture
def page(editor):
    page = create_page("Shop", "pages/page.html", "en", created_by=editor)
    page.set_as_homepage()
    return page


def offer_on(page, text: str):
    placeholder = page.get_placeholders("en").get(slot="content")
    offer = Offer.objects.create(text=text)
    return add_plugin(placeholder, "ShowOffer", "en", offer=offer)


def test_a_plugin_shows_an_object(client, editor, page):
    plugin = offer_on(page, "tea")
    assert plugin.offer.pk == ("offers/1-A" if TEXT else 1)
    assert f"<p>tea ({plugin.offer.pk})</p>" in client.get("/").content.decode()
    client.force_login(editor)
    edit = get_object_edit_url(page.get_content_obj("en"))
    assert "<p>tea (" in client.get(edit).content.decode()
    other = Offer.objects.create(text="coffee")
    url = f"/admin/cms/placeholder/edit-plugin/{plugin.pk}/?cms_path=/"
    assert client.post(url, {"offer": other.pk}).status_code == 200
    assert OfferPlugin.objects.get().offer == other


def test_an_extension_of_a_page(client, editor, page):
    client.force_login(editor)
    add = f"/admin/pages/price/add/?extended_object={page.pk}"
    assert client.post(add, {"amount": 5}).status_code == 302
    price = page.price
    assert price.pk == ("prices/1-A" if TEXT else 1)
    assert client.get(add, follow=True).context["original"] == price
    copied = page.copy(page.site, language="en", user=editor)
    assert copied.price.pk == ("prices/2-A" if TEXT else 2)
    assert copied.price.amount == 5
    delete = f"/admin/pages/price/{quote(price.pk)}/delete/"
    assert client.post(delete, {"post": "yes"}).status_code == 302
    assert Price.objects.get() == copied.price


def test_placeholders_of_a_model_need_integer_keys():
    story = Story.objects.create()
    if TEXT:
        with pytest.raises(ValueError, match="expected a number"):
            get_placeholder_from_slot(story.placeholders, "text")
        return
    placeholder = get_placeholder_from_slot(story.placeholders, "text")
    add_plugin(placeholder, "ShowOffer", "en", offer=Offer.objects.create(text="tea"))
    assert placeholder.source == story
    story.delete()
    assert not OfferPlugin.objects.exists()


@pytest.mark.skipif(TEXT, reason="Permissions for pages need users with integer keys.")
def test_permissions_for_pages(editor, page):
    ben = Member.objects.create_user("ben", "ben@example.org", "secret")
    create_page_user(editor, ben)
    assert PageUser.objects.get().pk == ben.pk
    assert not user_can_change_page(ben, page)
    assign_user_to_page(page, ben, can_change=True)
    ben = Member.objects.get(pk=ben.pk)
    assert user_can_change_page(ben, page)
