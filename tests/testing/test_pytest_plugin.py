"""The fixture `hilo_ids`, as pytest finds it where the package is installed."""

import os
import sys
import tomllib
from importlib.metadata import entry_points
from textwrap import dedent

import pytest

from tests.support.commands import PROJECT, run

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
POINTS = PYPROJECT["entry-points"]["pytest11"]
# In a project that has neither Django's settings nor pytest-django.
PLAIN = """
    import sys

    def test_nothing_is_imported():
        ours = {name for name in sys.modules if name.startswith("django_hilo")}
        assert ours == {"django_hilo", "django_hilo.pytest_plugin"}
        assert not {"django", "pytest_django"} & set(sys.modules)

    def test_an_id(hilo_ids):
        raise AssertionError("is not run")
"""
WITH_DJANGO = """
    import pytest
    from django.db import connection
    from django_hilo.generator import next_id

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("time", [1, 2])
    def test_an_id(hilo_ids, time):
        assert not connection.in_atomic_block
        assert next_id("orders") == "orders/1-A"
"""
# As a program does that sets Django up by itself.
START = "import django_hilo, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
CONFTEST = """
    from django_hilo.testing import hilo_ids

    pytest_plugins = ["django_hilo.pytest_plugin"]
"""
SETTINGS = """
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3"}}
    INSTALLED_APPS = ["django_hilo"]
"""


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """Install the package, but for its files, which are the checkout's."""
    site = tmp_path / "site"
    info = site / "django_hilo-0.dist-info"
    info.mkdir(parents=True)
    files = [each.relative_to(PROJECT) for each in PROJECT.glob("django_hilo/**/*.py")]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    (info / "METADATA").write_text("Name: django-hilo\nVersion: 0\n")
    points = "\n".join(f"{name} = {module}" for name, module in POINTS.items())
    (info / "entry_points.txt").write_text(f"[pytest11]\n{points}\n")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO_", "PYTEST_"))
    }
    return {**kept, "PYTHONPATH": f"{site}{os.pathsep}{PROJECT}"}


@pytest.fixture
def by_pytest(tmp_path, environment):
    def tested(code: str, *options: str, conftest: str = "", expect: int = 0) -> str:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "test_it.py").write_text(dedent(code))
        (folder / "settings.py").write_text(dedent(SETTINGS))
        (folder / "conftest.py").write_text(dedent(conftest))
        # Neither the configuration of the checkout nor plugins that are not spoken of.
        quiet = ["-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
        installed = {each.name for each in entry_points(group="pytest11")}
        quiet += [f"-pno:{name}" for name in installed - {"django", *POINTS}]
        command = [sys.executable, "-W", "error", "-c", START, *quiet, *options]
        return run(*command, cwd=folder, env=environment, expect=expect).stdout

    return tested


def test_it_costs_a_project_without_django_nothing(by_pytest):
    printed = by_pytest(PLAIN, "-p", "no:django", expect=1)
    assert "1 passed, 1 error" in printed
    assert "fixture 'db' not found" in printed  # of pytest-django


def test_it_is_there_without_an_import(by_pytest):
    assert "2 passed in" in by_pytest(WITH_DJANGO, "--ds=settings")


def test_a_conftest_may_name_it_too(by_pytest):
    printed = by_pytest(WITH_DJANGO, "--ds=settings", conftest=CONFTEST)
    assert "2 passed in" in printed
