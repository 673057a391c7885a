from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.templatetags.static import static
from django.urls import reverse

from example_project.shop.models import Invoice, Order


@dataclass(frozen=True, slots=True)
class Visit:
    """A request and what came of it; ``path`` is where redirects led to."""

    method: str
    url: str
    status: int
    content: bytes
    path: str

    @property
    def title(self) -> str:
        """The title of the page, "" where there is none."""
        found = re.search(rb"<title>(.*?)</title>", self.content, re.DOTALL)
        text = found[1].decode() if found else ""
        return " ".join(html.unescape(text).split())


class Browser:
    """A visitor who keeps cookies."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        # No proxy of the environment may stand between us and our own server.
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), ProxyHandler({}))
        self._opener.addheaders = [("Accept", "text/html,*/*;q=0.8")]

    def get(self, path: str) -> Visit:
        """Request a page."""
        return self._visit("GET", path, None)

    def post(self, path: str, **values: str) -> Visit:
        """Send a form."""
        return self._visit("POST", path, urlencode(values).encode())

    def _visit(self, method: str, path: str, data: bytes | None) -> Visit:
        url = self._origin + path
        try:
            with self._opener.open(url, data, timeout=60) as answer:
                content = answer.read()
                return Visit(method, url, answer.status, content, _path(answer.url))
        except HTTPError as error:
            with error:
                return Visit(method, url, error.code, error.read(), _path(error.url))


def visit_all(
    origin: str, username: str, password: str
) -> Iterator[tuple[Visit, bool]]:
    """Visit every page, and say of each whether it answered as it should."""
    browser = Browser(origin)
    for path in [*shop_pages(), reverse("shop:readme")]:
        yield _expecting(browser.get(path), path)
    login, index = reverse("admin:login"), reverse("admin:index")
    form = browser.get(login)
    yield _expecting(form, login)
    token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', form.content)
    yield _expecting(
        browser.post(
            login,
            username=username,
            password=password,
            csrfmiddlewaretoken=token[1].decode() if token else "",
            next=index,
        ),
        index,
    )
    for path in [*admin_pages(), *api_pages()]:
        yield _expecting(browser.get(path), path)


def shop_pages() -> list[str]:
    """Return the paths of the public pages, with one order and one invoice."""
    lists = [reverse(f"shop:{name}") for name in ("customers", "products", "orders")]
    invoice = Invoice.objects.select_related("order").last()
    order = invoice.order if invoice else Order.objects.last()
    objects = [found.get_absolute_url() for found in (order, invoice) if found]
    second = f"{lists[-1]}?page=2"
    files = [static(f"shop/{name}") for name in ("shop.css", "favicon.svg")]
    return [reverse("shop:front"), *files, *lists, second, *objects]


def admin_pages() -> list[str]:
    """Return the paths of the admin: index, and each model's list, object, history."""
    paths = [reverse("admin:index")]
    for model in apps.get_models():
        if admin.site.is_registered(model):
            paths += _pages_of(model)
    return paths


def api_pages() -> list[str]:
    """Return the paths of the API: its documentation, lists, an order, the counters."""
    names = ["docs", "schema", "api-root", "django_hilo:documents"]
    lists = [f"{name}-list" for name in ("customer", "product", "order", "invoice")]
    paths = [reverse(name) for name in (*names, *lists)]
    order = Order.objects.order_by("id__number").last()
    if order is not None:
        names = ["order-detail", "order-lines"]
        paths += [reverse(name, args=[order.pk]) for name in names]
    return paths


def _pages_of(model: type[models.Model]) -> list[str]:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    paths = [reverse(f"{name}_changelist")]
    found = model._default_manager.first()
    if found is not None:
        key = [quote(found.pk)]
        paths += [
            reverse(f"{name}_change", args=key),
            reverse(f"{name}_history", args=key),
        ]
    return paths


def _expecting(visit: Visit, path: str) -> tuple[Visit, bool]:
    # A page that asks for a login answers 200 as well.
    return visit, visit.status == 200 and visit.path == _path(path)


def _path(url: str) -> str:
    return urlsplit(url).path
