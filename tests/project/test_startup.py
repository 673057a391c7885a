"""A start reads no database, and no more of the package than saves need."""

import os
import subprocess
import sys

import pytest

from django_hilo import sources
from tests.support.commands import PROJECT

LOOK = """
import importlib, pkgutil
import django_hilo
from django.db import connections

for module in pkgutil.walk_packages(django_hilo.__path__, "django_hilo."):
    importlib.import_module(module.name)
opened = [c.alias for c in connections.all(initialized_only=True) if c.connection]
print("opened", opened)
"""


def test_neither_import_nor_ready_opens_a_connection(python):
    assert python(LOOK) == "opened []"


def test_a_query_does(python, transactional_db):
    asked = LOOK.replace("opened =", "Order.objects.count()\nopened =")
    assert python(asked) == "opened ['default']"


START = """
import sys
from django.conf import settings

settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django_hilo"])
import django

django.setup()
print(*(name for name in sys.modules if name.partition(".")[0] != "django"))
"""
# How long a start takes is what `make bench` tells; how many modules it reads is exact.
MOST_MODULES = 88
LATER = ("admin", "management", "metrics", "moving", "ravendb", "testing", "views")


def test_a_start_reads_what_saves_need():
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
    modules = done.stdout.decode().split()
    ours = [name for name in modules if name.startswith("django_hilo")]
    assert "django_hilo.fields.hilo" in ours
    assert len(ours) <= MOST_MODULES
    assert not {name.split(".")[1] for name in ours if "." in name} & set(LATER)
    assert not {"rest_framework", "xxhash", "psycopg", "MySQLdb"} & set(modules)


@pytest.mark.parametrize(
    "module", ["fields", "managers", "generator", "counters", "converters", "sources"]
)
def test_an_import_needs_no_settings(module):
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", f"import django_hilo.{module}"]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def test_sources_have_their_names_when_asked_and_no_others():
    assert all(isinstance(getattr(sources, name), type) for name in dir(sources))
    assert set(dir(sources)) == {"ForeignCounter", "Row", "Sequence"}
    with pytest.raises(AttributeError, match="has no attribute 'Table'"):
        getattr(sources, "Table")  # noqa: B009 - type checkers know that there is none
