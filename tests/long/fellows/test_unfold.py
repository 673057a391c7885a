"""Unfold's theme, with its own templates for the others that come with admin pages."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import path as route
from unfold.admin import ModelAdmin
from unfold.contrib.import_export.forms import ExportForm, ImportForm
from unfold.sites import UnfoldAdminSite

from tests.long.fellows.market.admin import HistoryAdmin, InvoiceAdmin, OrderAdmin
from tests.long.fellows.market.models import Contract, Invoice, Order

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


class UnfoldOrderAdmin(ModelAdmin, OrderAdmin):
    import_form_class = ImportForm
    export_form_class = ExportForm


class UnfoldHistoryAdmin(HistoryAdmin, ModelAdmin):
    pass


class UnfoldInvoiceAdmin(InvoiceAdmin, ModelAdmin):
    pass


site = UnfoldAdminSite(name="admin")
site.register(Order, UnfoldOrderAdmin)
site.register(Contract, UnfoldHistoryAdmin)
site.register(Invoice, UnfoldInvoiceAdmin)
urlpatterns = [route("admin/", site.urls)]


@pytest.fixture(autouse=True)
def unfold_first(settings):
    """As where Unfold stands before the others in INSTALLED_APPS."""
    folders = [
        Path(app.path) / "templates"
        for app in apps.get_app_configs()
        if app.name.startswith("unfold")
    ]
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": folders}]


def test_import_and_export(pages):
    Order.objects.create(name="old")
    start = pages.list(Order) + "import/"
    page = pages.get(start)
    assert "unfold" in page
    formats = re.findall(r'<option value="(\d+)"[^>]*>\s*csv', page)
    upload = SimpleUploadedFile("orders.csv", b"id,name\n,new\norders/1-A,renamed\n")
    answer = pages.client.post(start, {"import_file": upload, "format": formats[0]})
    assert answer.status_code == 200
    hidden = answer.context["confirm_form"].initial
    pages.post(pages.list(Order) + "process_import/", hidden)
    assert Order.objects.get(pk="orders/1-A").name == "renamed"
    assert Order.objects.count() == 2


def test_history(pages):
    contract = Contract.objects.create(name="old")
    pages.post(pages.of(contract), {"name": "new"})
    page = pages.get(pages.of(contract, "history"))
    first = contract.history.earliest()
    link = f"{pages.list(Contract)}{contract.pk}/history/{first.pk}/"
    assert f'href="{link}"' in page
    pages.get(link)
    pages.post(link, {"name": "old"})
    contract.refresh_from_db()
    assert contract.name == "old"


def test_permissions_of_an_object(pages, django_user_model):
    clerk = django_user_model.objects.create_user("clerk")
    invoice = Invoice.objects.create(order=Order.objects.create())
    url = pages.of(invoice, "permissions")
    pages.get(url)
    leads_to = pages.post(url, {"submit_manage_user": "1", "user": "clerk"})
    pages.post(leads_to, {"permissions": ["view_invoice"]})
    assert clerk.has_perm("market.view_invoice", invoice)
    assert f"user-manage/{clerk.pk}" in pages.get(url)
