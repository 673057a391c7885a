import pytest
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType

from tests.long.fellows.workshop.models import (
    Car,
    Device,
    Phone,
    Screen,
    Truck,
    Vehicle,
)

pytestmark = pytest.mark.django_db

both = pytest.mark.parametrize(
    ("base", "first", "second"), [(Vehicle, Car, Truck), (Device, Phone, Screen)]
)


@both
def test_rows_are_of_their_own_class(base, first, second, statements):
    a, b = first.objects.create(name="a"), second.objects.create(name="b")
    c = base.objects.create(name="c")
    keys = [1, 2, 3] if base is Device else [f"vehicles/{n}-A" for n in (1, 2, 3)]
    assert [each.pk for each in (a, b, c)] == keys
    assert list(base.objects.order_by("name")) == [a, b, c]
    assert [type(each) for each in base.objects.order_by("name")] == [
        first,
        second,
        base,
    ]
    assert set(base.objects.instance_of(second)) == {b}
    assert type(base.objects.non_polymorphic().get(pk=b.pk)) is base
    assert type(base.objects.get(pk=b.pk)) is second
    b.name = "d"
    assert "INSERT" not in statements(b.save)
    base.objects.get(pk=a.pk).delete()
    assert not first.objects.exists()


@both
def test_ids_before_the_insert(base, first, second):
    objects = [first(name="a"), second(name="b"), base(name="c")]
    base.objects.assign_ids(objects)
    assert len({each.pk for each in objects}) == 3
    for obj in objects:
        obj.save()
    assert set(base.objects.all()) == set(objects)
    assert len(base.objects.bulk_create([base(name="d"), base(name="e")])) == 2


@both
def test_the_pages_of_the_admin(base, first, second, pages):
    values = {"doors": 5} if base is Vehicle else {"number": "1"}
    assert first._meta.verbose_name in pages.get(f"{pages.list(base)}add/").lower()
    ids = [ContentType.objects.get_for_model(each).pk for each in (first, second)]
    pages.post(f"{pages.list(base)}add/?ct_id={ids[0]}", {"name": "a", **values})
    obj = base.objects.get()
    assert type(obj) is first
    change = f"{pages.list(base)}{quote(obj.pk)}/change/"
    assert change in pages.get(f"{pages.list(base)}?polymorphic_ctype={ids[0]}")
    assert change not in pages.get(f"{pages.list(base)}?polymorphic_ctype={ids[1]}")
    assert 'value="a"' in pages.get(change)
    pages.post(change, {"name": "b", **values})
    assert base.objects.get().name == "b"
    pages.get(change.replace("/change/", "/history/"))
    pages.post(change.replace("/change/", "/delete/"), {"post": "yes"})
    assert not base.objects.exists()
