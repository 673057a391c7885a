"""README and docs tell the truth about what can be checked by a machine."""

import doctest
import re
import runpy

import pytest

from django_hilo.conf import KEYS, Defaults
from tests.support.commands import PROJECT

DOCS = "".join(page.read_text() for page in (PROJECT / "docs").rglob("*.md"))
CHECKS = (PROJECT / "docs/reference/checks.md").read_text()
SETTINGS = (PROJECT / "docs/reference/settings.md").read_text()


def test_each_check_is_explained():
    modules = (PROJECT / "django_hilo").rglob("*.py")
    source = "".join(module.read_text() for module in modules)
    used = set(re.findall(r'"(?:django_hilo\.)?([EIW]\d{3})"', source))
    assert used == set(re.findall(r"django_hilo\.([EIW]\d{3})", CHECKS))
    assert len(used) > 10


def test_messages_of_the_page_are_in_the_code_and_those_of_the_log_on_the_page():
    assert not runpy.run_path(str(PROJECT / "docs/messages.py"))["faults"]()


@pytest.mark.parametrize(
    "name", ["converters", "generator", "identifiers", "managers", "signals", "testing"]
)
def test_a_star_import_gives_what_the_reference_explains(name):
    exported: dict[str, object] = {}
    exec(f"from django_hilo.{name} import *", exported)
    del exported["__builtins__"]
    page = (PROJECT / f"docs/reference/api/{name}.md").read_text()
    listed = re.findall(rf"django_hilo\.{name}\.(\w+)", page)
    for members in re.findall(r"^   :members: (.+)$", page, re.MULTILINE):
        listed += members.split(", ")
    methods = {method for value in exported.values() for method in dir(value)}
    assert set(listed) - methods <= set(exported)
    assert all(re.search(rf"\b{each}\b", DOCS) for each in exported)


@pytest.mark.parametrize("key", sorted(KEYS))
def test_each_setting_is_explained_with_its_default(key):
    (row,) = [
        line
        for line in SETTINGS.splitlines()
        if line.startswith("| ") and f"`{key}`" in line.split("|")[1]
    ]
    default = getattr(Defaults, key)
    written = f"{default:_}" if type(default) is int else repr(default)
    assert written.replace("'", '"') in row.split("|")[2]
    headings = re.findall("^### (.*)$", SETTINGS, re.MULTILINE)
    assert sum(key in heading.split(" and ") for heading in headings) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", "docs/reference/ids.md"]
)
def test_examples_print_what_the_page_says(name):
    from tests.apps.records.models import Order, OrderLine

    page = (PROJECT / name).read_text()
    text = "".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    names = {"Order": Order, "OrderLine": OrderLine}
    examples = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    failed, tried = doctest.DocTestRunner(verbose=False).run(examples)
    assert (failed, tried >= 3) == (0, True)


@pytest.mark.parametrize(
    "page",
    sorted((PROJECT / "docs").rglob("*.md")),
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
