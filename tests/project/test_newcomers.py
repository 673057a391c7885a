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

class Invoice(models.Model):
    id = HiLoField(primary_key=True, anchor="order")
    order = models.ForeignKey(Order, models.PROTECT)

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
    ("value", "said"),
    [
        ({"NODETAG": "A"}, "not a key of HILO.*correct the spelling: .*NODE_TAG"),
        ({"NODE_TAG": "a"}, "1 to 4 upper-case letters"),
        ({"NODE_TAG": {"eu": "B"}}, "DATABASES has no alias 'eu'"),
        ({"SEPARATOR": "-"}, "one ASCII punctuation character other than"),
        ({"SEPARATOR": None}, r"SEPARATOR'\] is None\..*one ASCII punctuation"),
        ({"LOCK_TIMEOUT": "5"}, "a number of seconds greater than 0"),
        ({"SOURCES": {"orders": "hibernate"}}, r"hibernate.HiLo\(max_lo=9\)"),
        ("A", "Write HILO = {'NODE_TAG': 'A'}"),
    ],
)
def test_settings(project, value, said):
    project.set(HILO=value)
    try:
        assert matches(said, project.manage("check", expect=1))
    finally:
        project.set(HILO={})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("collection=5", "The collection 5 is not valid"),
        ("max_length=8", "Set max_length=28 or more"),
        ("max_length='20'", "'max_length' must be a positive integer"),
        ("anchor='custmer'", "no field named 'custmer'. Name a relation"),
        ("convention=lambda instance, id: id", "a function at the top level"),
        ("default='orders/1'", "Remove default="),
        ("width=30", "1 to 19"),
    ],
)
def test_fields(project, options, said):
    given = MODELS.replace("(primary_key=True)", f"({options}, primary_key=True)", 1)
    project.write("shop/models.py", given)
    try:
        assert matches(said, project.manage("check", expect=1))
    finally:
        project.write("shop/models.py", MODELS)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Order.objects.create(id=5)", "5, which is not .* 'orders'. Omit the id, or"),
        ("Order.objects.assign_ids([Bill()])", "Expected shop.Order objects, got Bill"),
        ("Plain.objects.assign_ids([Plain()])", "shop.Plain has no HiLo field."),
        ("Order.objects.create(id='orders/9999999999-A')", "raise .*MAX_FLOOR_JUMP"),
        ("Invoice.objects.create()", r"anchor 'order' is empty.*assign_ids\(\)"),
        ("Bill.objects.bulk_create([Bill()])", "not a HiLoManager: use one"),
        ("next_id('shop.Ordr')", "doesn't have a 'Ordr' model"),
        ("next_id(Session)", "sessions.Session has 0 HiLo fields.*pass a collection"),
        ("settings.HILO = {'NODE_TAG': ''}; next_id('x')", "It must be 1 to 4 upper-"),
        ("next_ids(Order, 0)", "an integer of at least 1, not 0"),
    ],
)
def test_calls(project, code, said):
    names = "from django.contrib.sessions.models import Session\n"
    names += "from django_hilo.generator import *\nfrom shop.models import *\n"
    names += "from django.conf import settings\n"
    project.set(INSTALLED_APPS=[*APPS, "django.contrib.sessions"])
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
