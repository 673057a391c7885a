"""Runners of tests: several processes, and databases that outlive a run."""

import re
import shutil

import pytest

from tests.support.databases import CHOSEN
from tests.support.projects import project_in

MODELS = """
from django.db import models
from django_hilo.fields import HiLoBigAutoField, HiLoField

# In the order of the migration, which Django makes.
class Item(models.Model):
    id = HiLoBigAutoField(primary_key=True)

class Order(models.Model):
    id = HiLoField(primary_key=True)
"""
# What a project's data migration leaves in each database of tests.
DATA = """
from django.db import migrations

def add(apps, schema_editor):
    apps.get_model("shop", "Order")(id="orders/1-A").save()

class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial"), ("django_hilo", "0001_initial")]
    operations = [migrations.RunPython(add)]
"""
TESTS = """
import os
from django.db import connection
from django.test import TestCase, TransactionTestCase
from django_hilo.generator import next_ids
from shop.models import Item, Order

def highest():
    with connection.cursor() as cursor:
        name = connection.ops.quote_name("max")
        cursor.execute(
            f"SELECT {name}, floor FROM django_hilo_hilodocument WHERE id = 'orders/A'"
        )
        number = max(cursor.fetchone())
        cursor.execute("SELECT MAX(id) FROM shop_item")
        return number, cursor.fetchone()[0] or 0

class Checked:
    def check(self):
        before, key = self.before
        with self.assertNumQueries(1):
            order = Order.objects.create()
        with self.assertNumQueries(1):
            item = Item.objects.create()
        assert order.pk == f"orders/{before + 1}-A", (order.pk, before)
        assert item.pk > key, (item.pk, key)
        with open("seen", "a") as file:
            print(os.getpid(), connection.settings_dict["NAME"], order.pk, file=file)

    def test_one(self):
        self.check()

    def test_two(self):
        self.check()

class One(Checked, TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.before = highest()

class Two(One):
    pass

class Three(One):
    pass

class WithSerializedRollback(TransactionTestCase):
    serialized_rollback = True

    def test_one(self):
        assert Order.objects.get().pk == "orders/1-A"
        # Without a warning that the counters fell back: their rows were restored.
        with self.assertNoLogs("django_hilo", "WARNING"):
            numbers = [int(Order.objects.create().pk[7:-2]) for _ in range(3)]
            for _ in range(2):
                next_ids(Order, 1000), next_ids(Item, 1000)
        assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
        assert numbers[0] > 1

    def test_two(self):
        self.test_one()
"""
# The test holds a lock until it ends, so that no thread can write.
IN_MEMORY = """
from concurrent.futures import ThreadPoolExecutor
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import TestCase
from shop.models import Order

class InMemory(TestCase):
    def test_a_thread(self):
        assert connection.is_in_memory_db()
        Order.objects.create()
        for create in User.objects.create, Order.objects.create:
            with (
                self.assertNoLogs("django_hilo", "WARNING"),
                self.assertRaisesMessage(OperationalError, "table is locked"),
                ThreadPoolExecutor() as pool,
            ):
                pool.submit(create).result()
"""
# As fixtures of a session, which commit rows for all tests.
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    from shop.models import Item, Order
    with django_db_blocker.unblock():
        Order.objects.create(), Item.objects.create()
"""
APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_hilo", "shop"]


@pytest.fixture(scope="module")
def project(tmp_path_factory, django_db_setup, django_db_blocker):
    folder = tmp_path_factory.mktemp("project")
    with django_db_blocker.unblock(), project_in(folder) as project:
        project.set(INSTALLED_APPS=APPS)
        project.write("shop/models.py", MODELS)
        project.run(
            "from django.core.management import call_command;"
            "call_command('makemigrations', 'shop', verbosity=0)"
        )
        project.write("shop/migrations/0002_data.py", DATA)
        project.write("shop/tests.py", TESTS)
        yield project


def seen(project):
    """Return the process, database and id of each test, and forget them."""
    file = project.folder / "seen"
    lines = [line.split() for line in file.read_text().splitlines()]
    file.unlink()
    return lines


def test_a_flush_gives_types_and_permissions_the_same_keys(project):
    """Else data that Django has kept for serialized_rollback is refused."""
    project.run(
        """
        from django.contrib.auth.models import Permission
        from django.core.management import call_command
        call_command("migrate", verbosity=0)
        rows = Permission.objects.order_by("pk").values_list()
        before = list(rows)
        call_command("flush", verbosity=0, interactive=False)
        assert list(rows.all()) == before, (before, list(rows.all()))
        """
    )


def test_parallel(project):
    project.manage("test", "--parallel=3", "--noinput")
    lines = seen(project)
    assert len(lines) == 6
    # Each process has its own clone; a quick one may run two classes.
    clones = {(process, name) for process, name, _ in lines}
    assert len(clones) == len({process for process, _ in clones})
    assert len(clones) == len({name for _, name in clones})


@pytest.mark.skipif(CHOSEN != "sqlite", reason="SQLite alone can be in memory")
def test_a_thread_beside_a_test_in_memory(project, tmp_path):
    """An id fails at once, as each of Django's own statements there."""
    with project_in(tmp_path) as mine:
        place = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}
        mine.set(INSTALLED_APPS=APPS, DATABASES={"default": place})
        shutil.copytree(project.folder / "shop", tmp_path / "shop")
        mine.write("shop/tests.py", IN_MEMORY)
        mine.manage("test", "--noinput")


def test_xdist(project):
    """Classes run in several processes."""
    project.pytest("shop/tests.py", "-n3", "--dist=loadscope")
    lines = seen(project)
    assert len(lines) == 6
    assert len({process for process, _, _ in lines}) > 1
    for process in {process for process, _, _ in lines}:
        assert len({name for each, name, _ in lines if each == process}) == 1


def test_a_database_that_is_kept(project):
    project.write("conftest.py", CONFTEST)
    plain = "-k", "not Serialized"  # without the flush of TransactionTestCase
    try:
        firsts = []
        for _ in range(2):
            project.pytest("shop/tests.py", "--reuse-db", *plain)
            numbers = [int(re.search(r"\d+", id)[0]) for _, _, id in seen(project)]
            assert len(numbers) == 6
            assert len(set(numbers)) == 1
            firsts += numbers[:1]
        assert firsts[0] < firsts[1]
    finally:
        (project.folder / "conftest.py").unlink()
        project.pytest("shop/tests.py", "--create-db", *plain)
