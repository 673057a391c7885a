"""What is not installed, or not in the settings, is not needed."""

import sys

from tests.support.commands import output_of


def run(code: str) -> str:
    """Run code in a process where nothing is configured nor imported yet."""
    return output_of(sys.executable, "-W", "error", "-c", PREAMBLE + code)


PREAMBLE = """
import sys
import django
from django.conf import settings

def configure(urls, **more):
    settings.configure(
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django_hilo"
        ],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        },
        ROOT_URLCONF=urls,
        ALLOWED_HOSTS=["*"],
        **more,
    )
    django.setup()
    from django.core.management import call_command
    call_command("check", "--fail-level=WARNING")
    call_command("migrate", verbosity=0)
"""


def test_without_drf_the_rest_works():
    code = """
sys.modules["rest_framework"] = sys.modules["drf_spectacular"] = None
configure("django_hilo.ravendb.urls")
import importlib, pkgutil, django_hilo
for module in pkgutil.iter_modules(django_hilo.__path__, "django_hilo."):
    if module.name not in ("django_hilo.rest_framework", "django_hilo.admin"):
        importlib.import_module(module.name)
assert not [name for name in sys.modules if name.startswith("django_hilo.rest")]
from django_hilo.generator import next_id
print(next_id("orders"))
"""
    assert run(code).endswith("orders/1-A")


def test_drf_without_a_setting_nor_its_app_nor_spectacular_suffices():
    code = """
sys.modules["drf_spectacular"] = None
configure("django_hilo.rest_framework.urls")
from django.contrib.auth.models import User
from rest_framework.test import APIClient
from django_hilo.counters import reserve
reserve("orders")
client = APIClient()
client.force_authenticate(User.objects.create_superuser("boss"))
answer = client.post("/collections/orders/next-id/", {"count": 1}, format="json")
print(answer.status_code, answer.json()["ids"])
"""
    assert run(code).endswith("201 ['orders/2-A']")


def test_spectacular_that_is_installed_but_not_used_is_not_imported():
    code = """
configure("django_hilo.rest_framework.urls")
import django_hilo.rest_framework.urls
print([name for name in sys.modules if name.startswith("drf_spectacular")])
"""
    assert run(code).endswith("[]")
