from __future__ import annotations

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.http import Http404
from guardian.admin import GuardedModelAdmin
from guardian.shortcuts import (
    assign_perm,
    get_objects_for_group,
    get_objects_for_user,
    get_perms,
    get_users_with_perms,
    remove_perm,
)
from guardian.utils import get_anonymous_user

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
def order():
    return Order.objects.create()


@pytest.fixture
def invoices(order):
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


def test_one_of_several_permissions(clerk, invoices):
    first, second, _ = invoices
    names = ["market.change_invoice", "market.view_invoice"]
    for name in names:
        assign_perm(name, clerk, first)
    assign_perm(names[0], clerk, second)
    assert set(get_objects_for_user(clerk, names)) == {first}
    assert set(get_objects_for_user(clerk, names, any_perm=True)) == {first, second}


def test_the_anonymous_user(order):
    assign_perm("market.view_order", get_anonymous_user(), order)
    assert set(get_objects_for_user(get_anonymous_user(), "market.view_order")) == {
        order
    }


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


@pytest.mark.parametrize("kind", ["user", "group"])
def test_as_they_come_they_forget_to_quote_and_to_unquote(clerk, invoices, kind, rf):
    """Theirs: the reason for the lines of InvoiceAdmin."""
    site = AdminSite()
    pages = GuardedModelAdmin(Invoice, site)
    quoted = quote(invoices[0].pk)
    group = Group.objects.create(name="office")
    request = rf.get("/")
    request.user = User.objects.create_superuser("root")
    view = getattr(pages, f"obj_perms_manage_{kind}_view")
    with pytest.raises(Http404):
        view(request, quoted, clerk.pk if kind == "user" else group.pk)
    (pattern,) = [
        each
        for each in pages.get_urls()
        if each.name == f"market_invoice_permissions_manage_{kind}"
    ]
    assert not pattern.pattern.match(f"{invoices[0].pk}/permissions/{kind}-manage/1/")
    assert pattern.pattern.match(f"{quoted}/permissions/{kind}-manage/1/")
