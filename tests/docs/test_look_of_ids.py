"""The guide to the look of ids: each row of its table, and each example."""

import re

import pytest
from django.db import models
from django.test.utils import isolate_apps

from django_hilo.fields import HiLoField
from django_hilo.generator import raise_floor
from django_hilo.managers import HiLoManager
from tests.support.pages import STARTED, Follower, blocks, fences, page
from tests.support.projects import project_in

PAGE = page("how-to/look-of-ids.md")
ROWS = re.findall(r"^\| `(.+)` \| `(.+?)`.* \|$", PAGE.read_text(), re.MULTILINE)

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.mark.parametrize(("id", "code"), ROWS)
def test_each_look_of_the_table(id, code, settings):
    assert len(ROWS) == 6
    given = {"HiLoField": HiLoField}
    if code.startswith("HILO"):
        exec(code, given)
        settings.HILO = {**settings.HILO, **given["HILO"]}
        code = "HiLoField(primary_key=True)"
    is_line = "anchor" in code
    body = {
        "__module__": __name__,
        "id": eval(code, given),
        "objects": HiLoManager(),
        "Meta": type("Meta", (), {"app_label": "records"}),
    }
    with isolate_apps("tests.apps.records"):
        name = "OrderLine" if is_line else "Order"
        model = type(name, (models.Model,), body)
    raise_floor(model, 32)
    anchor = "orders/7-A" if is_line else None
    assert model.objects.next_id(anchor=anchor) == id


@pytest.fixture
def project(tmp_path):
    with project_in(tmp_path) as plain:
        yield Follower(tmp_path, plain.database)


def test_the_examples(project):
    found = fences(PAGE)
    models_of_page, deletion = (e.text for e in found if e.language == "python")
    project.write("shop/models.py", models_of_page + TICKETS)
    project.migrate("shop")
    project.test("\n".join(each.text for each in found if each.language == "pycon"))
    assert project.run(ROLLED_BACK).split() == ["INV-2028-0001", "INV-2028-0001"]
    project.run(SAVED + deletion + BEGUN_AGAIN)
    assert project.run(TICKET) == "SUP-1"


# Numbers that do not wait, as the text has them.
TICKETS = """

class Ticket(models.Model):
    id = HiLoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.PROTECT)
    number = HiLoField(per=["tenant"], look="SUP-{number}", capacity=1, max_capacity=1)
    objects = HiLoManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="one_ticket_number"
            )
        ]
"""
ROLLED_BACK = """
    from django.db import transaction
    from shop.models import Invoice, Tenant

    tenant = Tenant.objects.first()
    with transaction.atomic():
        lost = Invoice.objects.create(tenant=tenant, date="2028-01-01")
        print(lost.number)
        transaction.set_rollback(True)
    print(Invoice.objects.create(tenant=tenant, date="2028-01-01").number)
"""
# A tenant whose rows and counters are deleted begins again.
SAVED = """
from django_hilo.models import HiLoDocument
from shop.models import Invoice, Tenant, Ticket

seven = Tenant.objects.create(id="tenants/7-A")
Invoice.objects.create(tenant=seven, date="2026-01-01").delete()
Ticket.objects.create(tenant=seven).delete()
HiLoDocument.objects.filter(collection="tickets.tenants/7-a").delete()
"""
BEGUN_AGAIN = """
again = Invoice.objects.create(tenant=seven, date="2026-01-01")
assert again.number == "INV-2026-0001"
"""
TICKET = """
    from shop.models import Ticket

    print(Ticket.objects.create(tenant_id="tenants/7-A").number)
"""


def test_500_invoices_keep_their_numbers(project):
    models_of_page = next(e.text for e in fences(PAGE) if e.language == "python")
    before = re.sub(
        r"number = GaplessIdField\([^)]*\)",
        "number = models.CharField(max_length=20)",
        models_of_page,
    )
    assert before != models_of_page
    project.write("shop/models.py", before)
    project.migrate("shop")
    project.run(NUMBERED)
    project.write("shop/models.py", models_of_page)
    [commands] = blocks(PAGE, "Invoices that have numbers already", "console")
    said = project.shell(" && ".join(re.findall(r"^\$ (.*)", commands, re.MULTILINE)))
    assert "'invoices.tenants/7-a.2026' on 'default' was raised: 0 to 500." in said
    assert project.run(FOLLOWING) == "INV-2026-0500 INV-2026-0501"


NUMBERED = """
    from shop.models import Invoice, Tenant

    tenant = Tenant.objects.create(id="tenants/7-A")
    numbers = [f"INV-2026-{number:04}" for number in range(1, 501)]
    known = {"tenant": tenant, "date": "2026-05-01"}
    Invoice.objects.bulk_create([Invoice(number=each, **known) for each in numbers])
"""
FOLLOWING = """
    from shop.models import Invoice

    last = Invoice.objects.order_by("number").last()
    following = Invoice.objects.create(tenant_id="tenants/7-A", date="2026-06-01")
    print(last.number, following.number)
"""


MODELS = """
    from django.db import models
    from django.urls import reverse
    from django_hilo.fields import HiLoField

    class Order(models.Model):
        id = HiLoField(primary_key=True)

        def get_absolute_url(self):
            return reverse("order", args=[self.pk])
"""
URLS = """
    from django.contrib import admin
    from django.http import HttpResponse
    from django.urls import include, path
    from rest_framework import serializers, viewsets
    from rest_framework.routers import DefaultRouter

    from shop.models import Order

    class OrderSerializer(serializers.HyperlinkedModelSerializer):
        class Meta:
            model = Order
            fields = ["url"]

    class OrderViewSet(viewsets.ModelViewSet):
        queryset = Order.objects.all()
        serializer_class = OrderSerializer

    router = DefaultRouter()
    router.register("orders", OrderViewSet)
    admin.site.register(Order)
    urlpatterns = [
        path("admin/", admin.site.urls),
        path("api/", include(router.urls)),
        path("orders/<str:pk>/", lambda _, pk: HttpResponse(pk), name="order"),
    ]
"""
VISIT = """
    import re, sys
    from django.contrib.auth.models import User
    from django.test import Client
    from shop.models import Order

    order, browser = Order.objects.create(), Client()
    browser.force_login(User.objects.create_superuser("root"))
    assert browser.get(order.get_absolute_url()).content.decode() == order.pk
    page = browser.get(f"/admin/shop/order/{order.pk}/change/", follow=True)
    (link,) = re.findall('href="([^"]*)" class="viewsitelink"', page.content.decode())
    assert browser.get(link, follow=True).content.decode() == order.pk
    if sys.argv[1:] == ["router"]:
        [shown] = browser.get("/api/orders/").json()
        assert browser.get(shown["url"]).json() == shown
    print(order.pk)
"""


@pytest.mark.parametrize(("separator", "what"), [(":", ["router"]), (".", [])])
def test_without_slashes(project, separator, what):
    apps = [*STARTED["INSTALLED_APPS"], "rest_framework"]
    project.set(HILO={"SEPARATOR": separator}, INSTALLED_APPS=apps)
    project.write("shop/models.py", MODELS)
    project.write("urls.py", URLS)
    project.migrate("shop")
    assert project.run(VISIT, *what) == f"orders{separator}1-A"


RENAMED = """
    from django.db import migrations

    class Migration(migrations.Migration):
        dependencies = [("shop", "0001_initial")]
        operations = [migrations.RenameModel("Order", "Purchase")]
"""


def test_a_renamed_model(project):
    project.write("shop/models.py", MODELS)
    project.migrate("shop")
    create = "from shop.models import *; print(%s.objects.create().pk)"
    project.run(create % "Order")
    renamed = MODELS.replace("class Order", "class Purchase")
    project.write("shop/models.py", renamed)
    project.write("shop/migrations/0002_renamed.py", RENAMED)
    project.migrate("shop")
    check = ("check", "--database", "default", "--fail-level", "WARNING")
    assert "django_hilo.W117" in project.manage(*check, expect=1)
    key = "primary_key=True, "
    kept = renamed.replace("primary_key=True", f'{key}collection="orders"')
    project.write("shop/models.py", kept)
    project.migrate("shop")
    project.manage(*check)
    assert project.run(create % "Purchase") == "orders/2-A"
    project.write("shop/models.py", renamed)
    assert project.run(create % "Purchase") == "purchases/1-A"
