import pytest
from taggit.models import Tag

from tests.long.fellows.market.models import (
    Invoice,
    Map,
    Order,
    Photo,
    PhotoOfInvoice,
    Stamp,
    TaggedById,
)

pytestmark = pytest.mark.django_db


def photo_of_invoice():
    invoice = Invoice.objects.create(order=Order.objects.create())
    return PhotoOfInvoice.objects.create(invoice=invoice)


@pytest.mark.parametrize(
    "make",
    [Photo.objects.create, photo_of_invoice, Map.objects.create, Stamp.objects.create],
    ids=["text", "anchored", "through a foreign key", "integer"],
)
def test_tags(make):
    first, second, third = (make() for _ in range(3))
    model = type(first)
    first.tags.add("red", "blue")
    second.tags.add("red")
    third.tags.set(["green"])
    assert set(first.tags.names()) == {"red", "blue"}
    assert set(model.objects.filter(tags__name__in=["red"])) == {first, second}
    assert first.tags.similar_objects() == [second]
    assert {tag.name for tag in model.tags.most_common()} == {"red", "blue", "green"}
    prefetched = model.objects.prefetch_related("tags").get(pk=first.pk)
    assert {tag.name for tag in prefetched.tags.all()} == {"red", "blue"}
    first.tags.remove("red")
    assert set(model.objects.filter(tags__name="red")) == {second}
    through = model.tags.through
    count = through.objects.count()
    third.delete()
    assert through.objects.count() == count - 1
    second.tags.clear()
    assert not second.tags.exists()


def test_models_of_one_table_of_tags_keep_apart():
    photo, other = Photo.objects.create(), photo_of_invoice()
    photo.tags.add("red")
    other.tags.add("red")
    items = TaggedById.objects.order_by("pk")
    assert [item.object_id for item in items] == [
        "photos/1-A",
        "InvoicePhotos/1-A$invoices/1-A$orders/1-A",
    ]
    assert [item.content_object for item in items] == [photo, other]
    assert list(Photo.objects.filter(tags__name="red")) == [photo]


def test_the_admin_filters_by_tags(pages):
    photo, other = Photo.objects.create(), Photo.objects.create()
    photo.tags.add("red")
    other.tags.add("blue")
    red = Tag.objects.get(name="red")
    page = pages.get(f"{pages.list(Photo)}?tags__id__exact={red.pk}")
    assert photo.pk in page
    assert other.pk not in page
    pages.post(pages.of(photo), {"tags": "green, blue"})
    assert set(photo.tags.names()) == {"green", "blue"}
