import html
import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.utils import quote
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext

# Projects of their own, which test_projects.py runs.
PROJECTS = {
    "apart": "HILO_TEST_APART",
    "caches": "HILO_TEST_CACHE",
    "portal": "HILO_TEST_KEYS",
}
collect_ignore = [name for name, chosen in PROJECTS.items() if chosen not in os.environ]

# What they do that Django 6.1 deprecates.
THEIRS = [
    "ignore:Calling select_related.. with no arguments",  # simple-history's admin
    "ignore:Overriding get_actions.. without",  # mptt's admin
    "ignore:SQLCompiler.quote_name_unless_alias",  # taggit's manager
    "ignore:Overriding get_action_choices",  # Unfold
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for warning in THEIRS:
            item.add_marker(pytest.mark.filterwarnings(warning))


class Pages:
    """The admin's pages, as a superuser sees them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def list(self, model: type[models.Model]) -> str:
        return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"

    def of(self, obj: models.Model, page: str = "change") -> str:
        return f"{self.list(type(obj))}{quote(obj.pk)}/{page}/"

    def get(self, url: str) -> str:
        answer = self.client.get(url)
        assert answer.status_code == 200, (url, answer.status_code)
        return html.unescape(answer.content.decode())

    def post(self, url: str, data: dict[str, Any]) -> str:
        """Post a form, and return the path that it leads to."""
        answer = self.client.post(url, data)
        errors = re.findall(r"errorlist.*?</ul>", answer.content.decode(), re.DOTALL)
        assert answer.status_code == 302, (url, answer.status_code, errors)
        return urlsplit(answer.url).path


@pytest.fixture
def pages(admin_client: Client) -> Pages:
    return Pages(admin_client)


@pytest.fixture
def statements() -> Callable[[Callable[[], Any]], list[str]]:
    """Return the first words of the statements that a call sends."""

    def run(call: Callable[[], Any]) -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            call()
        words = [query["sql"].split(None, 1)[0] for query in queries]
        return [word for word in words if word not in TRANSACTION]

    return run


TRANSACTION = {"BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "START"}
