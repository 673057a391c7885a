"""HiLoBigAutoField in migrations: the real commands, in a project of its own."""

from collections.abc import Iterator

import pytest

from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.projects import EVENT_TABLES, Project, project_in

pytestmark = pytest.mark.servers

MODELS = """
    from django.db import models
    from django_hilo.fields import HiLoBigAutoField

    class Customer(models.Model):
        id = {key}(primary_key=True)
        name = models.CharField(max_length=50, default="")

    class Order(models.Model):
        id = {key}(primary_key=True)
        customer = models.ForeignKey(Customer, models.CASCADE, related_name="orders")
        gifts_to = models.ManyToManyField(Customer)
"""
CREATE = """
    from shop.models import Customer, Order
    for n in range(20):
        customer = Customer.objects.create(name=f"c{n}")
        order = Order.objects.create(customer=customer)
        order.gifts_to.add(customer)
    Customer.objects.create(name="gone")
    Customer.objects.get(name="gone").delete()
"""
# By the column's default, as writers do that know nothing of HiLo.
BY_DEFAULT = """
    from django.db import connection
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop_customer (name) VALUES ('default')")
        cursor.execute("SELECT MAX(id) FROM shop_customer")
        print(cursor.fetchone()[0])
"""
LIST = """
    from shop.models import Customer, Order
    print(sorted(Customer.objects.values_list("id", "name")))
    print(sorted(Order.objects.values_list("id", "customer__name")))
    print(sorted(Order.gifts_to.through.objects.values_list("order_id", "customer_id")))
"""
# The next 50, over a number.
CREATE_MORE = """
    import sys
    from shop.models import Customer
    made = [Customer.objects.create(name="new").pk for _ in range(50)]
    assert len(set(made)) == 50 and min(made) > int(sys.argv[1]), made
    print(max(made))
"""


@pytest.fixture
def project(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        yield project


def set_key(project: Project, key: str) -> None:
    project.write("shop/models.py", MODELS.format(key=key))


def statements(sql: str) -> list[str]:
    """Return what a migration's SQL does, without its transaction and its comments."""
    lines = [line for line in sql.splitlines() if line and not line.startswith("--")]
    return [line for line in lines if line not in ("BEGIN;", "COMMIT;")]


def test_from_an_auto_field_and_back_to_a_big_one(project):
    set_key(project, "models.AutoField")
    project.migrate("shop")
    project.run(CREATE)
    before = project.run(LIST)
    set_key(project, "models.BigAutoField")
    project.migrate("shop")

    set_key(project, "HiLoBigAutoField")
    assert project.migrate("shop").count("~ Alter field id on") == 2
    for arguments in (["shop", "0003"], ["--backwards", "shop", "0003"]):
        sql = statements(project.manage("sqlmigrate", *arguments))
        assert bool(sql) == (CHOSEN == "sqlite"), sql
    assert project.run(LIST) == before
    project.run(CREATE_MORE, "20")
    last = 3_000_000_000
    project.run(f"from shop.models import *; Customer(pk={last}).save()", expect=1)
    project.set(HILO={"MAX_FLOOR_JUMP": 10**10})
    project.run(f"from shop.models import *; Customer.objects.create(pk={last})")
    last = int(project.run(CREATE_MORE, str(last)))

    after = project.run(LIST)
    project.manage("migrate", "shop", "0002", "-v0")
    set_key(project, "models.BigAutoField")
    assert project.run(LIST) == after
    last = int(project.run(CREATE_MORE, str(last)))
    assert int(project.run(BY_DEFAULT)) > last


@pytest.mark.skipif(CHOSEN != "sqlite", reason="Only SQLite copies tables.")
def test_a_rebuilt_table_leaves_the_default_over_what_processes_hold(project):
    set_key(project, "HiLoBigAutoField")
    project.migrate("shop")
    holder = project.start(
        """
        import sys
        from django.db import connection
        from shop.models import Customer
        Customer.objects.create()
        connection.close()
        print("holds", flush=True)
        sys.stdin.readline()
        print(*[Customer.objects.create().pk for _ in range(20)])
        """
    )
    assert holder.stdout.readline() == "holds\n"
    models = MODELS.replace("max_length=50", "max_length=60, null=True")
    project.write("shop/models.py", models.format(key="HiLoBigAutoField"))
    project.migrate("shop")
    assert "new__shop_customer" in project.manage("sqlmigrate", "shop", "0002")
    theirs = {int(text) for text in project.run(BY_DEFAULT * 3).split()}
    output, errors = holder.communicate("\n", timeout=PATIENCE)
    assert holder.returncode == 0, errors
    assert len({int(text) for text in output.split()} | theirs) == 23


SAME = """
    from django.db import migrations, models
    from django_hilo.fields import HiLoBigAutoField
    from django_hilo.managers import HiLoManager

    def fill(apps, schema_editor):
        Event = apps.get_model("shop", "Event")
        Event.objects.create(name="a")
        Event(name="b").save()
        Event.objects.bulk_create([Event(name=f"c{n}") for n in range(40)])
        Event.objects.get_or_create(name="d")
        Plain = apps.get_model("shop", "Plain")
        Plain.objects.bulk_create([Plain(event=event) for event in Event.objects.all()])
        given = Event.objects.assign_ids([Event(name="e")])[0]
        connection = schema_editor.connection
        # PostgreSQL's sequence is there with the table, in the same transaction.
        has_counter = connection.vendor == "postgresql" or (
            "django_hilo_hilodocument" in connection.introspection.table_names()
        )
        assert (given.pk is not None) == has_counter, given.pk
        given.save()
        assert Event.objects.count() == 44, Event.objects.count()

    class Migration(migrations.Migration):
        initial = True
        dependencies = DEPENDENCIES
"""
EVENTS = """
    from django.db import models
    from django_hilo.fields import HiLoBigAutoField
    from django_hilo.managers import HiLoManager

    class Event(models.Model):
        id = HiLoBigAutoField(primary_key=True)
        name = models.CharField(max_length=50)
        objects = HiLoManager()

    class Plain(models.Model):
        id = HiLoBigAutoField(primary_key=True)
        event = models.ForeignKey(Event, models.CASCADE)
"""
LATER = """
    from django.db import migrations

    def fill(apps, schema_editor):
        Event = apps.get_model("shop", "Event")
        over = max(Event.objects.values_list("pk", flat=True))
        made = [Event.objects.create(name="later").pk for _ in range(40)]
        Event.objects.bulk_create([Event(name="l"), Event(name="l")])
        # MySQL does not return what its default gave.
        made += Event.objects.filter(name="l").values_list("pk", flat=True)
        assert min(made) > over and len(set(made)) == 42, (over, made)

    class Migration(migrations.Migration):
        dependencies = [("shop", "0001_initial")]
        operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
"""
MIGRATE = """
    from django.core.management import call_command
    call_command("makemigrations", check=True, verbosity=0)
    call_command("migrate", "shop", verbosity=0)
    call_command("showmigrations", "django_hilo")
"""
AGAIN = """
    from django.core.management import call_command
    call_command("migrate", "shop", "zero", verbosity=0)
    call_command("migrate", verbosity=0)
"""
AFTER = """
    from django.core.management import call_command
    call_command("migrate", verbosity=0)

    from shop.models import Event, Plain
    over = max(Event.objects.values_list("pk", flat=True))
    made = [Event.objects.create(name="now").pk for _ in range(40)]
    assert min(made) > over and len(set(made)) == 40, (over, made)
    Plain.objects.create(event_id=over)
    print(Event.objects.count())
"""


@pytest.mark.parametrize("tables_first", [False, True])
def test_rows_of_historical_models_in_the_migration_that_makes_their_table(
    project, tables_first
):
    needs = [("django_hilo", "0001_initial")] if tables_first else []
    project.write("shop/models.py", EVENTS)
    text = (SAME + EVENT_TABLES).replace("DEPENDENCIES", repr(needs))
    project.write("shop/migrations/0001_initial.py", text)
    assert ("[X]" in project.run(MIGRATE)) == tables_first
    project.write("shop/migrations/0002_later.py", LATER)
    project.manage("migrate", "shop", "-v0")
    assert project.run(AFTER) == "126"
    project.run(AGAIN)
    assert project.run(AFTER) == "126"
