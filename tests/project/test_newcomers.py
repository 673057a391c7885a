"""What a newcomer is likely to get wrong, and what the message then suggests."""

import re

import pytest

from tests.support.databases import CHOSEN
from tests.support.projects import project_in

pytestmark = pytest.mark.skipif(CHOSEN != "sqlite", reason="the same on each database")

FILL = """
from django.db import migrations

def fill(apps, schema_editor):
    apps.get_model("shop", "Order").objects.create()

class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [migrations.RunPython(fill)]
"""
MODELS = """
from django.db import models
from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager

class Order(models.Model):
    id = HiLoField(primary_key=True)
    objects = HiLoManager()

class Bill(models.Model):
    id = GaplessIdField(primary_key=True)

class Plain(models.Model):
    objects = HiLoManager()
"""
APPS = ["django_hilo", "shop"]


def matches(pattern, text):
    return re.search(pattern, text, re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with project_in(tmp_path_factory.mktemp("project")) as project:
        project.set(INSTALLED_APPS=APPS)
        project.write("shop/models.py", MODELS)
        project.migrate("shop")
        yield project


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Order.objects.assign_ids([Bill()])", "Expected shop.Order objects, got Bill"),
        ("Plain.objects.assign_ids([Plain()])", "shop.Plain has no HiLo field."),
        ("settings.HILO = {'NODE_TAG': ''}; next_id('x')", "It must be 1 to 4 upper-"),
    ],
)
def test_calls(project, code, said):
    names = "from django_hilo.generator import *\nfrom shop.models import *\n"
    names += "from django.conf import settings\n"
    assert matches(said, project.run(names + code, expect=1))


def test_tables(project):
    project.set(INSTALLED_APPS=["shop"])
    said = project.manage("check", expect=1)
    assert matches("INSTALLED_APPS.*'django_hilo'", said)
    project.set(INSTALLED_APPS=APPS)
    project.manage("migrate", "django_hilo", "zero", "-v0")
    said = project.run("from shop.models import *; Order.objects.create()", expect=1)
    assert matches("run: python manage.py migrate django_hilo", said)
    project.write("shop/migrations/0002_fill.py", FILL)
    said = project.manage("migrate", "shop", expect=1)
    assert matches("add .'django_hilo', '0001_initial'. to its dependencies", said)
    dependency = "('django_hilo', '0001_initial'), "
    text = FILL.replace("dependencies = [", f"dependencies = [{dependency}")
    project.write("shop/migrations/0002_fill.py", text)
    project.manage("migrate", "shop", "-v0")
