"""README and docs tell the truth about what can be checked by a machine."""

from __future__ import annotations

import doctest
import re

import pytest

from django_hilo.conf import KEYS, Settings
from tests.conftest import PROJECT

README = (PROJECT / "README.md").read_text()
CHECKS = (PROJECT / "docs/reference/checks.md").read_text()
SETTINGS = (PROJECT / "docs/reference/settings.md").read_text()


def test_each_check_is_explained():
    modules = (PROJECT / "django_hilo/checks").glob("*.py")
    source = "".join(module.read_text() for module in modules)
    used = set(re.findall(r'"(?:django_hilo\.)?([EIW]\d{3})"', source))
    assert used == set(re.findall(r"django_hilo\.([EIW]\d{3})", CHECKS))
    assert len(used) > 10


@pytest.mark.parametrize("key", sorted(KEYS))
def test_each_setting_is_explained_with_its_default(key):
    (row,) = [
        line
        for line in SETTINGS.splitlines()
        if line.startswith("| ") and f"`{key}`" in line.split("|")[1]
    ]
    default = getattr(Settings, key)
    written = f"{default:_}" if type(default) is int else repr(default)
    assert written.replace("'", '"') in row.split("|")[2]
    headings = re.findall("^### (.*)$", SETTINGS, re.MULTILINE)
    assert sum(key in heading.split(" and ") for heading in headings) == 1


@pytest.mark.django_db
def test_the_first_screen_prints_what_it_says():
    from tests.apps.records.models import Order

    said = re.findall(r"^'(.*)'$", README.split("To see it at work")[0], re.MULTILINE)
    got = [
        Order.objects.create().id,
        Order.objects.create().id,
        Order.objects.next_id(),
    ]
    assert got == said


def test_ids_are_read_as_the_page_says():
    page = (PROJECT / "docs/reference/ids.md").read_text()
    text = "".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, "ids.md", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(examples) == (0, 3)


@pytest.mark.parametrize(
    "page",
    [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_links_lead_somewhere(page):
    """Files are there, and so are the headings that links name."""
    text = page.read_text()
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert heading in {_anchor(title) for title in titles}, link


def _anchor(title: str) -> str:
    """Return what GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
