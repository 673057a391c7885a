import pytest
import reversion
from reversion.models import Revision, Version

from tests.long.fellows.market.models import Enclosure, Letter

pytestmark = pytest.mark.django_db


@pytest.fixture
def letter():
    with reversion.create_revision():
        letter = Letter.objects.create(text="first")
        Enclosure.objects.create(letter=letter, text="map")
    assert letter.pk == "letters/1-A"
    return letter


def change(letter, text):
    with reversion.create_revision():
        letter.text = text
        letter.save()


def test_versions_and_reverting(letter):
    change(letter, "second")
    newest, oldest = Version.objects.get_for_object(letter)
    assert (newest.field_dict["text"], oldest.field_dict["text"]) == ("second", "first")
    assert oldest.object_id == "letters/1-A"
    assert oldest.object == letter
    assert list(Version.objects.get_for_object_reference(Letter, "letters/1-A"))
    oldest.revision.revert()
    letter.refresh_from_db()
    assert letter.text == "first"


def test_what_follows_an_anchored_id_is_reverted_along(letter):
    enclosure = letter.enclosures.get()
    assert enclosure.pk == "enclosures/1-A$letters/1-A"
    change(letter, "second")
    key = enclosure.pk
    enclosure.delete()
    Revision.objects.earliest("pk").revert()
    assert Enclosure.objects.get().pk == key
    assert Enclosure.objects.create(letter=letter).pk != key


def test_the_pages_of_the_admin(pages):
    add = {
        "text": "first",
        "enclosures-TOTAL_FORMS": 1,
        "enclosures-INITIAL_FORMS": 0,
        "enclosures-0-text": "map",
    }
    pages.post(pages.list(Letter) + "add/", add)
    letter, enclosure = Letter.objects.get(), Enclosure.objects.get()
    assert enclosure.pk == "enclosures/1-A$letters/1-A"
    change = {
        "text": "second",
        "enclosures-TOTAL_FORMS": 1,
        "enclosures-INITIAL_FORMS": 1,
        "enclosures-0-id": enclosure.pk,
        "enclosures-0-letter": letter.pk,
        "enclosures-0-text": "plan",
    }
    pages.post(pages.of(letter), change)
    _, oldest = Version.objects.get_for_object(letter)
    history = pages.of(letter, "history")
    url = f"{history}{oldest.pk}/"
    assert url in pages.get(history)
    assert "first" in pages.get(url)
    pages.post(url, {**change, "text": "first", "enclosures-0-text": "map"})
    letter.refresh_from_db()
    assert letter.text == "first"
    pages.post(pages.of(letter, "delete"), {"post": "yes"})
    assert not Letter.objects.exists()
    recover = pages.list(Letter) + "recover/"
    deleted = Version.objects.get_deleted(Letter).get()
    assert f"{recover}{deleted.pk}/" in pages.get(recover)
    assert "first" in pages.get(f"{recover}{deleted.pk}/")
    again = {**change, "text": "first", "enclosures-0-text": "map"}
    pages.post(f"{recover}{deleted.pk}/", again)
    assert Letter.objects.get().pk == letter.pk
    assert Enclosure.objects.get().pk == enclosure.pk
