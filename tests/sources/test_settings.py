"""settings.py imports sources before any app is loaded."""

import sys

from tests.support.commands import PROJECT, output_of

SETTINGS = """
from django_hilo.sources import ForeignCounter, Row, Sequence, formulas
from django_hilo.sources import (
    database, django_sequences, doctrine, efcore, hibernate, marten, nhibernate,
)

SECRET_KEY = "tests only"
INSTALLED_APPS = ["django_hilo"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
HILO = {"SOURCES": {"orders": hibernate.PooledLo(5, sequence="s", version="6.4.4")}}
"""


def test_they_need_no_models(tmp_path):
    (tmp_path / "project_settings.py").write_text(SETTINGS)
    environment = {
        "PYTHONPATH": f"{PROJECT}:{tmp_path}",
        "DJANGO_SETTINGS_MODULE": "project_settings",
    }
    said = output_of(sys.executable, "-m", "django", "check", env=environment)
    assert "no issues" in said
