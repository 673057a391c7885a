import pytest
from django.contrib.auth.models import Group, User
from guardian.shortcuts import (
    assign_perm,
    get_objects_for_group,
    get_objects_for_user,
    get_perms,
    get_users_with_perms,
    remove_perm,
)

from tests.long.fellows.market.models import (
    Invoice,
    Order,
    Parcel,
    ParcelPermission,
    Ticket,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def clerk():
    return User.objects.create_user("clerk", is_staff=True)


@pytest.fixture
def invoices():
    order = Order.objects.create()
    return [Invoice.objects.create(order=order) for _ in range(3)]


@pytest.fixture
def tickets():
    return [Ticket.objects.create() for _ in range(3)]


@pytest.mark.parametrize("kind", ["invoices", "tickets"])
def test_permissions_of_objects(kind, clerk, request):
    first, second, third = request.getfixturevalue(kind)
    name = f"market.change_{first._meta.model_name}"
    short = name.removeprefix("market.")
    given = assign_perm(name, clerk, first)
    given.refresh_from_db()
    assert given.object_pk == str(first.pk)
    assert given.content_object == first
    assert clerk.has_perm(name, first)
    assert not clerk.has_perm(name, second)
    assert not clerk.has_perm(name)
    group = Group.objects.create(name="office")
    clerk.groups.add(group)
    assign_perm(name, group, type(first).objects.filter(pk=third.pk))
    clerk = User.objects.get(pk=clerk.pk)
    assert get_perms(clerk, third) == [short]
    assert set(get_objects_for_user(clerk, name)) == {first, third}
    assert set(get_objects_for_group(group, name)) == {third}
    assert list(get_users_with_perms(first, only_with_perms_in=[short])) == [clerk]
    remove_perm(name, clerk, first)
    assert set(get_objects_for_user(clerk, name)) == {third}


def test_permissions_by_a_foreign_key(clerk):
    first, second = Parcel.objects.create(), Parcel.objects.create()
    assign_perm("market.change_parcel", clerk, first)
    assert ParcelPermission.objects.get().content_object_id == "parcels/1-A"
    assert clerk.has_perm("market.change_parcel", first)
    assert not clerk.has_perm("market.change_parcel", second)
    assert list(get_objects_for_user(clerk, "market.change_parcel")) == [first]


@pytest.mark.parametrize("kind", ["user", "group"])
def test_the_pages_of_the_admin(pages, clerk, invoices, kind):
    first = invoices[0]
    group = Group.objects.create(name="office")
    clerk.groups.add(group)
    key, name = (clerk.pk, "clerk") if kind == "user" else (group.pk, "office")
    url = pages.of(first, "permissions")
    pages.get(url)
    leads_to = pages.post(url, {f"submit_manage_{kind}": "1", kind: name})
    pages.get(leads_to)
    again = pages.post(leads_to, {"permissions": ["change_invoice"]})
    assert again == leads_to
    clerk = User.objects.get(pk=clerk.pk)
    assert clerk.has_perm("market.change_invoice", first)
    assert not clerk.has_perm("market.change_invoice", invoices[1])
    # What the list of users leads to.
    assert f"{kind}-manage/{key}" in pages.get(url)
    assert 'value="change_invoice" selected' in pages.get(f"{url}{kind}-manage/{key}/")
