"""The guide to the look of ids: each row of its table, and each example."""

import re

import pytest
from django.db import models
from django.test.utils import isolate_apps

from django_hilo.fields import HiLoField
from django_hilo.generator import raise_floor
from django_hilo.managers import HiLoManager
from tests.support.databases import CHOSEN
from tests.support.pages import STARTED, Follower, fences, page
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
    for fence in found:
        if fence.language == "python":
            project.add(fence)
    project.migrate("shop")
    project.test("\n".join(each.text for each in found if each.language == "pycon"))
    told = project.run(ROLLED_BACK).split()
    assert told == ["INV-2028-0001", "INV-2028-0001", "INV-2028-0002"]
    told = project.run(ID_OF_ANOTHER).split()
    kept = "refused" if CHOSEN == "sqlite" else "INV-2030-0001"
    following = "INV-2030-0001" if CHOSEN == "sqlite" else "INV-2030-0002"
    assert told == ["INV-2030-0001", "INV-2031-0001", kept, following]
    told = project.run(REFUSED).split()
    assert told == ["INV-2032-0001", "INV-2032-0002"]


ROLLED_BACK = """
    from datetime import date
    from django.db import transaction
    from shop.models import Invoice

    first, day = Invoice(date=date(2028, 1, 1)), date(2028, 1, 2)
    with transaction.atomic():
        first.save()
        print(first.number, end=" ")
        transaction.set_rollback(True)
    print(Invoice.objects.create(date=day).number, end=" ")
    first.save()
    first.save()
    print(first.number)
"""
# On SQLite the other process gets the same id, so the object is not saved.
ID_OF_ANOTHER = """
    import subprocess, sys
    from datetime import date
    from django.db import transaction
    from django_hilo.exceptions import HiLoError
    from shop.models import Invoice

    first = Invoice(date=date(2030, 1, 1))
    with transaction.atomic():
        first.save()
        print(first.number, flush=True)
        transaction.set_rollback(True)
    create = "Invoice.objects.create(date=date(2031, 1, 1)).number"
    imports = "from datetime import date; from shop.models import Invoice"
    other = [sys.executable, "-c", f"import django; django.setup(); {imports}; "]
    subprocess.run([*other[:2], f"{other[2]}print({create})"], check=True)
    try:
        first.save()
        print(first.number)
    except HiLoError:
        print("refused")
    print(Invoice.objects.create(date=date(2030, 1, 2)).number)
"""
REFUSED = """
    from datetime import date
    from django.db import IntegrityError, connection
    from shop.models import Invoice

    number = int(Invoice.objects.next_id().removeprefix("invoices/").removesuffix("-A"))
    with connection.cursor() as cursor:
        insert = "INSERT INTO shop_invoice (id, number, date) VALUES (%s, 'x', %s)"
        cursor.execute(insert, [f"invoices/{number + 1}-A", date(2032, 1, 1)])
    invoice = Invoice(date=date(2032, 1, 2))
    try:
        invoice.save()
    except IntegrityError:
        invoice.save()
        print(invoice.number)
    print(Invoice.objects.create(date=date(2032, 1, 3)).number)
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
