"""Fields in a project, or a registry, without the app django_hilo."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connection, models
from django.test.utils import isolate_apps

from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
from tests.support.databases import CHOSEN
from tests.support.projects import EVENT_TABLES, Project, project_in

pytestmark = pytest.mark.servers

MODELS = """
    from django.db import models
    from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField

    class Order(models.Model):
        id = HiLoField(primary_key=True)

    class Bill(models.Model):
        id = GaplessIdField(primary_key=True)

    class Event(models.Model):
        id = HiLoBigAutoField(primary_key=True)
"""
REFUSED = """
    from django.core.exceptions import ImproperlyConfigured
    from django_hilo.generator import next_id
    from shop.models import Bill, Event, Order

    for take in NEEDING:
        try:
            take()
        except ImproperlyConfigured as error:
            assert "add 'django_hilo' to INSTALLED_APPS" in str(error), error
        else:
            raise AssertionError(take)
"""
TEXTS = "Order.objects.create, Bill.objects.create, lambda: next_id('orders')"
FORMER = """
    from django.db import migrations, models
    from django_hilo.fields import HiLoBigAutoField
    from django_hilo.managers import HiLoManager
    from django_hilo.moving import MoveToHiLo

    def fill(apps, schema_editor):
        Event = apps.get_model("shop", "Event")
        Event.objects.create(name="a")
        Event(name="b").save()
        Event.objects.bulk_create([Event(name="c"), Event(name="d")])
        Event.objects.bulk_create([Event(name="e")], ignore_conflicts=True)
        Event.objects.bulk_create([Event(id=100, name="f"), Event(id=101, name="g")])
        Event.objects.create(id=200, name="h")
        event = Event.objects.assign_ids([Event(name="i")])[0]
        event.save()
        Plain = apps.get_model("shop", "Plain")
        Plain.objects.bulk_create([Plain(event=event)])
        Plain.objects.create(event=event)

    class Migration(migrations.Migration):
        initial = True
"""
BACK = """
    from django.db import models

    class Event(models.Model):
        id = models.BigAutoField(primary_key=True)
        name = models.CharField(max_length=50)

    class Plain(models.Model):
        id = models.BigAutoField(primary_key=True)
        event = models.ForeignKey(Event, models.CASCADE)
"""


@pytest.fixture
def project(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["shop"])
        yield project


def test_a_check_and_the_first_id_name_the_remedy(project):
    project.write("shop/models.py", MODELS)
    found = project.manage("check", expect=1)
    assert found.count("(django_hilo.E114)") == 3
    assert found.count("Add 'django_hilo' to INSTALLED_APPS, and run migrate.") == 3
    # PostgreSQL's sequences need no table of ours.
    keys = "" if CHOSEN == "postgres" else ", Event.objects.create"
    project.set(SILENCED_SYSTEM_CHECKS=["django_hilo.E114"])
    project.migrate("shop")
    project.run(REFUSED.replace("NEEDING", f"({TEXTS}{keys})"))
    if CHOSEN == "postgres":
        project.run("from shop.models import Event; assert Event.objects.create().pk")


def test_a_project_that_removed_the_app_migrates_a_new_database(project):
    project.set(DEFAULT_AUTO_FIELD="django_hilo.fields.HiLoBigAutoField")
    project.write("shop/migrations/0001_initial.py", FORMER + EVENT_TABLES)
    project.write("shop/models.py", BACK)
    project.migrate("shop")
    project.run(
        """
        from shop.models import Event, Plain
        assert sorted(Event.objects.values_list("name", flat=True)) == list("abcdefghi")
        assert Plain.objects.count() == 2
        Event.objects.create(name="now")
        """
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", [HiLoField, GaplessIdField, HiLoBigAutoField])
def test_a_narrowed_registry(kind):
    apps.set_available_apps(["django.contrib.contenttypes"])
    try:
        with isolate_apps("django.contrib.contenttypes"):

            class Narrow(models.Model):
                id = kind(primary_key=True)
                name = models.CharField(max_length=9)

                class Meta:
                    app_label = "narrow"

            longer = models.CharField(max_length=19)
            longer.set_attributes_from_name("name")
            longer.model = Narrow
            with connection.schema_editor() as editor:
                editor.create_model(Narrow)
                # SQLite makes a table, and a class, anew.
                editor.alter_field(Narrow, Narrow._meta.get_field("name"), longer)
            try:
                assert not Narrow._meta.pk.check()
                first, second = Narrow.objects.create(name="a"), Narrow(name="b")
                second.save()
                assert None not in {first.pk, second.pk}
                assert Narrow.objects.count() == 2
            finally:
                with connection.schema_editor() as editor:
                    editor.delete_model(Narrow)
    finally:
        apps.unset_available_apps()
