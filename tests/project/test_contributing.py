"""The pages for those who carry the project on name what is there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "django_hilo"
PAGES = PROJECT / "docs/contributing"
ARCHITECTURE = (PAGES / "architecture.md").read_text()
WRITTEN = [PROJECT / "CONTRIBUTING.md", PROJECT / "SECURITY.md", *PAGES.rglob("*.md")]


def modules() -> set[str]:
    files = {file.stem for file in PACKAGE.glob("*.py")} - {"__init__"}
    return files | {folder.parent.name for folder in PACKAGE.glob("*/__init__.py")} - {
        "migrations"
    }


def test_each_module_has_a_place_in_the_layers():
    picture = ARCHITECTURE.partition("```text\n")[2].partition("```")[0]
    assert modules() - set(re.findall(r"\w+", picture)) == set()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page):
    named = re.findall(
        r"`([a-z_/]+\.(?:py|txt|md|sh)|(?:tests|benchmarks)/[a-z_/]+)`",
        page.read_text(),
    )
    missing = {
        name
        for name in named
        if not any((root / name).exists() for root in (PROJECT, PACKAGE))
    }
    assert missing == set()


def test_each_decision_is_listed():
    folder = PAGES / "decisions"
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(file.name for file in folder.glob("0*.md"))
