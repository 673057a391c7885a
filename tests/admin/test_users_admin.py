"""Ids with slashes, dollars and server prefixes in the admin of users' models."""

import html
import json
import re
from urllib.parse import urlsplit

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import modify_settings
from django.urls import path
from unfold.admin import ModelAdmin as UnfoldModelAdmin
from unfold.admin import TabularInline as UnfoldTabularInline
from unfold.sites import UnfoldAdminSite

from django_hilo.identifiers import parse
from django_hilo.models import ServerPrefix
from tests.apps.records.models import Invoice, Order, OrderLine

ORDER = "orders/North/1-A"
INVOICE = "invoices/North/1-A$orders/North/1-A"


class ByNumber:
    ordering = ("id__number",)

    @admin.display(description="id", ordering="id__number")
    def numbered_id(self, obj):
        return obj.pk


def register_all(site, model_admin, inline):
    class LineInline(inline):
        model = OrderLine
        extra = 0

    class OrderAdmin(ByNumber, model_admin):
        list_display = ("numbered_id", "name")
        list_editable = ("name",)
        search_fields = ("id", "name")
        actions = ("shout",)
        inlines = (LineInline,)
        save_as = True

        @admin.action(description="Shout")
        def shout(self, request, queryset):
            for order in queryset:
                order.name = order.name.upper()
                order.save()

    class LineAdmin(ByNumber, model_admin):
        list_display = ("numbered_id", "order")
        list_filter = ("order",)
        raw_id_fields = ("order",)
        search_fields = ("=id",)

    class InvoiceAdmin(ByNumber, model_admin):
        list_display = ("numbered_id", "order")
        list_filter = (("order", admin.RelatedOnlyFieldListFilter),)
        autocomplete_fields = ("order",)
        save_as = True

    site.register(Order, OrderAdmin)
    site.register(OrderLine, LineAdmin)
    site.register(Invoice, InvoiceAdmin)


plain_site = admin.AdminSite(name="admin")
register_all(plain_site, admin.ModelAdmin, admin.TabularInline)
unfold_site = UnfoldAdminSite(name="unfold")
register_all(unfold_site, UnfoldModelAdmin, UnfoldTabularInline)

urlpatterns = [path("admin/", plain_site.urls), path("unfold/", unfold_site.urls)]
pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


# Unfold 0.110 is not quite ready for Django 6.1.
unfold_param = pytest.param(
    "unfold", marks=pytest.mark.filterwarnings("ignore:Overriding get_action_choices")
)


@pytest.fixture(params=["admin", unfold_param])
def site(request, settings):
    settings.STATIC_URL = "static/"
    if request.param == "admin":
        yield request.param
        return
    with modify_settings(
        INSTALLED_APPS={
            "prepend": "unfold.apps.BasicAppConfig",
            "append": "django.contrib.staticfiles",
        }
    ):
        yield request.param


class Pages:
    """The pages of one site, as its superuser sees them."""

    def __init__(self, client, site):
        self.client, self.site = client, site

    def list(self, model, query=""):
        return f"/{self.site}/records/{model._meta.model_name}/{query}"

    def of(self, obj, page="change"):
        return f"{self.list(type(obj))}{quote(obj.pk)}/{page}/"

    def get(self, url):
        answer = self.client.get(url)
        assert answer.status_code == 200, url
        return answer

    def post(self, url, data, expect=302):
        answer = self.client.post(url, data)
        assert answer.status_code == expect, errors_of(answer)
        return answer

    def links(self, answer, start):
        """Return the paths on a page that start so, each of which must answer."""
        found = re.findall(r'href="([^"#][^"]*)"', answer.content.decode())
        paths = {urlsplit(html.unescape(link)).path for link in found}
        chosen = {path for path in paths if path.startswith(start)}
        for link in chosen:
            self.get(link)
        return chosen


def errors_of(answer):
    found = re.findall(r"errorlist.*?</ul>", answer.content.decode(), re.DOTALL)
    return answer.status_code, found


@pytest.fixture
def pages(admin_client, site):
    return Pages(admin_client, site)


@pytest.fixture
def order():
    ServerPrefix.objects.create(node_tag="A", prefix="North/")
    order = Order.objects.create(name="first")
    assert order.pk == ORDER
    return order


@pytest.fixture
def invoice(order):
    invoice = Invoice.objects.create(order=order)
    assert invoice.pk == INVOICE
    return invoice


def no_lines(**data):
    return {"lines-TOTAL_FORMS": 0, "lines-INITIAL_FORMS": 0, **data}


class TestChangelist:
    def test_it_is_in_order_of_numbers(self, pages):
        for number in (10, 9, 100):
            Order.objects.create(id=f"orders/{number}-A")

        def numbers(query=""):
            rows = pages.get(pages.list(Order, query)).context["cl"].result_list
            return [parse(order.pk).number for order in rows]

        assert numbers() == [9, 10, 100]
        assert numbers("?o=-1") == [100, 10, 9]
        assert numbers("?o=1") == [9, 10, 100]
        changelist = pages.get(pages.list(Order)).context["cl"]
        assert changelist.get_ordering_field_columns() == {1: "asc"}

    def test_its_links_lead_to_the_objects(self, pages, invoice):
        for obj in (invoice.order, invoice):
            page = pages.get(pages.list(type(obj)))
            assert pages.of(obj) in pages.links(page, pages.list(type(obj)))

    @pytest.mark.parametrize("text", [ORDER, "North/1", "orders/"])
    def test_search_by_id(self, pages, order, text):
        Order.objects.create(id="other/5-B")
        page = pages.get(pages.list(Order, f"?q={text}"))
        assert list(page.context["cl"].result_list) == [order]

    @pytest.mark.parametrize("model", [OrderLine, Invoice])
    def test_filters_of_relations(self, pages, order, model):
        other = Order.objects.create(name="second")
        rows = [model.objects.create(order=parent) for parent in (order, other)]
        page = pages.get(pages.list(model)).content.decode()
        offered = [
            html.unescape(link)
            for link in re.findall(r'"(\?[^"]*order__id__exact=[^"]*)"', page)
        ]
        if pages.site == "admin":
            found = [pages.get(pages.list(model, link)) for link in offered]
            assert [list(p.context["cl"].result_list) for p in found] == [
                [row] for row in rows
            ]
        query = f"?order__id__exact={order.pk}"
        page = pages.get(pages.list(model, query))
        assert list(page.context["cl"].result_list) == rows[:1]

    def test_editing_in_the_list(self, pages, order):
        second = Order.objects.create(name="second")
        data = {
            "form-TOTAL_FORMS": 2,
            "form-INITIAL_FORMS": 2,
            "form-0-id": order.pk,
            "form-0-name": "changed",
            "form-1-id": second.pk,
            "form-1-name": "second",
            "_save": "Save",
        }
        pages.post(pages.list(Order), data)
        names = Order.objects.order_by("id__number").values_list("name", flat=True)
        assert list(names) == ["changed", "second"]

    def test_deleting_what_is_selected(self, pages, invoice):
        second = Invoice.objects.create(order=invoice.order)
        data = {"action": "delete_selected", "_selected_action": [invoice.pk]}
        question = pages.post(pages.list(Invoice), data, expect=200)
        assert pages.of(invoice) in pages.links(question, pages.list(Invoice))
        assert html.escape(invoice.pk) in question.content.decode()
        pages.post(pages.list(Invoice), {**data, "post": "yes"})
        assert list(Invoice.objects.all()) == [second]


class TestObject:
    def test_changing(self, pages, order):
        page = pages.get(pages.of(order))
        assert 'value="first"' in page.content.decode()
        pages.post(pages.of(order), no_lines(name="changed", _continue="1"))
        order.refresh_from_db()
        assert (order.pk, order.name) == (ORDER, "changed")
        assert Order.objects.count() == 1

    def test_adding_takes_one_id_and_the_message_links_to_it(self, pages, order):
        pages.get(pages.list(Order, "add/"))
        answer = pages.post(pages.list(Order, "add/"), no_lines(name="second"))
        added = Order.objects.get(name="second")
        assert added.pk == "orders/North/2-A"
        page = pages.get(answer.url)
        assert pages.of(added) in pages.links(page, pages.list(Order))

    def test_recent_actions_link_to_the_objects(self, pages, order, invoice):
        pages.post(pages.of(order), no_lines(name="changed"))
        pages.post(pages.of(invoice), {"order": ORDER})
        entries = LogEntry.objects.all()
        urls = {"/" + entry.get_admin_url().lstrip("/") for entry in entries}
        assert urls == {
            f"/admin/records/order/{quote(ORDER)}/change/",
            f"/admin/records/invoice/{quote(INVOICE)}/change/",
        }
        for url in urls:
            pages.get(url.replace("/admin/", f"/{pages.site}/"))
        if pages.site == "admin":
            index = pages.get("/admin/")
            assert urls <= pages.links(index, "/admin/records/")

    def test_saving_as_new_gives_a_new_id_to_it_and_its_lines(self, pages, order):
        line = order.lines.create(quantity=7)
        data = {
            "name": "copy",
            "lines-TOTAL_FORMS": 1,
            "lines-INITIAL_FORMS": 1,
            "lines-0-id": line.pk,
            "lines-0-order": order.pk,
            "lines-0-quantity": 7,
            "_saveasnew": "1",
        }
        pages.post(pages.of(order), data)
        copy = Order.objects.get(name="copy")
        assert copy.pk == "orders/North/2-A"
        assert copy.lines.get().pk == "OrderLines/North/2-A"
        assert order.lines.get() == line

    def test_saving_as_new_with_an_anchor(self, pages, invoice):
        pages.post(pages.of(invoice), {"order": ORDER, "_saveasnew": "1"})
        copy = Invoice.objects.exclude(pk=INVOICE).get()
        assert copy.pk == "invoices/North/2-A$orders/North/1-A"

    def test_what_is_opened_burns_no_id(self, pages, order):
        pages.get(pages.list(Order, "add/"))
        pages.get(pages.of(order))
        wrong = no_lines(name="x" * 51)
        pages.post(pages.list(Order, "add/"), wrong, expect=200)
        assert Order.objects.next_id() == "orders/North/2-A"

    def test_an_id_that_no_row_has(self, pages, order):
        missing = Order(id="orders/North/99-A")
        answer = pages.client.get(pages.of(missing), follow=True)
        assert answer.redirect_chain == [(f"/{pages.site}/", 302)]
        assert "exist. Perhaps it was deleted?" in answer.content.decode()


class TestRelations:
    def test_autocomplete(self, pages, order):
        Order.objects.create(id="other/5-B")
        query = "app_label=records&model_name=invoice&field_name=order"
        answer = pages.get(f"/{pages.site}/autocomplete/?term={ORDER}&{query}")
        results = answer.json()["results"]
        assert [result["id"] for result in results] == [ORDER]
        answer = pages.post(pages.list(Invoice, "add/"), {"order": results[0]["id"]})
        assert Invoice.objects.get().pk == INVOICE

    def test_the_popup_of_a_raw_id(self, pages, order):
        form = pages.get(pages.list(OrderLine, "add/")).content.decode()
        (lookup,) = re.findall(
            r'href="([^"]*_to_field=id[^"]*)" class="related-lo', form
        )
        popup = pages.get(html.unescape(lookup) + "&_popup=1")
        offered = re.findall(r'data-popup-opener="([^"]*)"', popup.content.decode())
        assert [html.unescape(text) for text in offered] == [ORDER]
        data = {"order": html.unescape(offered[0]), "quantity": 1}
        pages.post(pages.list(OrderLine, "add/"), data)
        assert OrderLine.objects.get().order == order

    def test_the_link_beside_a_raw_id(self, pages, order):
        line = order.lines.create()
        page = pages.get(pages.of(line))
        content = page.content.decode()
        assert f'value="{ORDER}"' in content
        # Django does not quote the id here; the path finds the object all the same.
        links = pages.links(page, pages.list(Order))
        assert any(ORDER in link or quote(ORDER) in link for link in links), links

    @pytest.mark.parametrize("text", ["orders/North/99-A", "nonsense", "1", "a$b"])
    def test_a_raw_id_that_no_row_has(self, pages, order, text):
        data = {"order": text, "quantity": 1}
        page = pages.post(pages.list(OrderLine, "add/"), data, expect=200)
        assert "That choice is not one of the" in page.content.decode()
        assert f'value="{text}"' in page.content.decode()

    def test_the_buttons_beside_a_choice(self, pages, invoice):
        page = pages.get(pages.of(invoice)).content.decode()
        templates = re.findall(r'data-href-template="([^"]*)"', page)
        assert len(templates) >= 2
        for template in templates:
            # As RelatedObjectLookups.js does it: without quoting.
            url = html.unescape(template).replace("__fk__", ORDER)
            assert ORDER in pages.get(url).content.decode()

    def response_of(self, answer):
        text = re.search(r'data-popup-response="([^"]*)"', answer.content.decode())
        return json.loads(html.unescape(text[1]))

    def test_adding_in_a_popup(self, pages, order):
        data = no_lines(name="popped", _popup="1", _to_field="id")
        answer = pages.post(pages.list(Order, "add/?_popup=1"), data, expect=200)
        response = self.response_of(answer)
        assert response["value"] == "orders/North/2-A"
        assert Order.objects.get(pk=response["value"]).name == "popped"

    def test_changing_and_deleting_in_a_popup(self, pages, invoice):
        popup = {"_popup": "1", "_to_field": "id"}
        # The JavaScript that opens the popup does not quote the id.
        url = f"{pages.list(Invoice)}{INVOICE}/change/?_popup=1&_to_field=id"
        changed = pages.post(url, {"order": ORDER, **popup}, expect=200)
        url = f"{pages.list(Invoice)}{INVOICE}/delete/?_popup=1&_to_field=id"
        deleted = pages.post(url, {"post": "yes", **popup}, expect=200)
        assert self.response_of(changed) == {
            "action": "change",
            "value": INVOICE,
            "obj": str(invoice),
            "new_value": INVOICE,
        }
        assert self.response_of(deleted)["value"] == INVOICE
        assert not Invoice.objects.exists()
