"""The project itself, and what the page about it says."""

import re
import tomllib

import pytest
from django.apps import apps
from django.core.management import call_command

from tests.support.commands import PROJECT

PAGE = (PROJECT / "docs/how-to/fellow-packages.md").read_text()
PINS = "".join(
    (PROJECT / f"requirements/{name}.txt").read_text()
    for name in ("fellows", "apart", "test", "example")
)


@pytest.mark.django_db
def test_no_package_asks_for_another_migration(settings):
    """None leaves the type of its keys to the project."""
    settings.MIGRATION_MODULES = {}
    # The toolbar has a model only while its requests are stored in the database.
    labels = {app.label for app in apps.get_app_configs()} - {
        *("market", "workshop", "debug_toolbar")
    }
    call_command("makemigrations", *labels, check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_no_check_complains():
    call_command("check", fail_level="WARNING")


def test_the_page_names_the_versions_that_are_pinned():
    rows = re.findall(r"^\| ([\w.-]+) ([\d., ]+) \|", PAGE, re.MULTILINE)
    [unchanged] = re.findall(r"^No change is needed for (.*?)\. The", PAGE, re.M | re.S)
    rows += re.findall(r"([a-z][\w.-]+)\s+(\d[\d.]*\d)", unchanged)
    assert len(rows) > 12
    pinned = set(re.findall(r"^([\w.-]+)==([\d.]+)", PINS, re.MULTILINE))
    said = {(name, each) for name, text in rows for each in text.split(", ")}
    assert said <= pinned
    groups = tomllib.loads((PROJECT / "pyproject.toml").read_text())[
        "dependency-groups"
    ]
    packages = groups["fellows"][1:] + groups["apart"]
    own = {each.partition(">=")[0] for each in packages} - {"django"}
    assert own <= dict(said).keys()


FILES = {
    "admin": ["market/admin", "workshop/admin"],
    "conftest": ["test_hypothesis", "test_model_bakery"],
    "models": ["market/models", "workshop/models"],
    "schema": ["apart/test_graphene", "test_strawberry"],
    "urls": ["portal/urls"],
}


@pytest.mark.parametrize("name", FILES)
def test_the_page_s_lines_are_those_that_are_tested(name):
    folder = PROJECT / "tests/long/fellows"
    tested = "".join((folder / f"{file}.py").read_text() for file in FILES[name])
    blocks = re.findall(rf"```python\n# {name}\.py\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        assert block.strip("\n") in tested, block
