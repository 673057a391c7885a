"""MoveToHiLo by the real commands, in a project with whatever may refer to a key."""

import json
import re

import pytest

from tests.support.databases import CHOSEN
from tests.support.moving_shop import (
    FILL,
    HILO,
    INTEGER,
    RELATIONS,
    UUID,
    models,
    move,
    shop_in,
)
from tests.support.projects import project_in

pytestmark = pytest.mark.usefixtures("unblocked")

# A new object in each direction, by save().
CREATE = """
    from shop.models import *
    made = [Customer.objects.create(name=f"new{n}") for n in range(40)]
    made[1].parent = made[0]
    made[1].save()
    made[2].friends.add(made[3])
    Company.objects.create(name="new company", tax="1")
    print(*[each.pk for each in made])
"""


@pytest.fixture
def unblocked(django_db_blocker):
    with django_db_blocker.unblock():
        yield


def relations(project):
    """Return the keys by name, and who is related to whom by names."""
    found = json.loads(project.run(RELATIONS))
    return found.pop("keys"), found


@pytest.mark.parametrize("key", [INTEGER, UUID], ids=["integers", "uuids"])
def test_there_and_back(tmp_path, key):
    order_by = 'order_by=["made"],' if key == UUID else ""
    with shop_in(tmp_path, key) as project:
        project.run(FILL, "12")
        old_keys, before = relations(project)
        move(project, order_by)
        assert "CANNOT BE WRITTEN" in project.manage("sqlmigrate", "shop", "0002")
        project.manage("migrate")
        assert "No changes" in project.manage("makemigrations", "--check")
        new_keys, after = relations(project)
        assert after == before
        if key == INTEGER:
            assert new_keys == {
                name: f"customers/{old}-A" for name, old in old_keys.items()
            }
            highest = 13  # of the one that was deleted
        else:
            assert new_keys == {f"c{n}": f"customers/{n + 1}-A" for n in range(12)}
            highest = 12
        made = project.run(CREATE).split()
        assert made[0] == f"customers/{highest + 1}-A"
        assert len(set(made)) == 40

        _, before = relations(project)
        project.manage("migrate", "shop", "0001")
        project.write("shop/models.py", models(key))
        back, after = relations(project)
        assert after == before
        assert {name: back[name] for name in old_keys} == old_keys
        if key == INTEGER:
            assert back["new0"] == str(highest + 1)
            again = project.run(CREATE.replace("new", "again")).split()
            assert int(again[0]) > highest + 40


@pytest.mark.parametrize("key", [INTEGER, UUID], ids=["integers", "uuids"])
def test_from_ids_that_were_there_from_the_beginning(tmp_path, key):
    with shop_in(tmp_path, HILO) as project:
        project.run(FILL, "12")
        old_keys, before = relations(project)
        project.write("shop/models.py", models(key))
        project.manage("hilo_move_plan", "shop", "--write", "-n", "back", "-v0")
        project.manage("migrate")
        assert "No changes" in project.manage("makemigrations", "--check")
        keys, after = relations(project)
        assert after == before
        if key == INTEGER:
            assert old_keys == {name: f"customers/{n}-A" for name, n in keys.items()}
        assert len(set(project.run(CREATE).split()) - set(keys.values())) == 40


SHOP = """
    from django.contrib.contenttypes.fields import GenericForeignKey
    from django.contrib.contenttypes.models import ContentType
    from django.db import models
    from django_hilo.fields import HiLoField

    class Order(models.Model):
        id = {key}(primary_key=True)

    class {tag}(models.Model):
        content_type = models.ForeignKey(ContentType, models.CASCADE)
        object_id = models.CharField(max_length=64)
        target = GenericForeignKey()
        class Meta:
            db_table = {table!r}
"""
BIG = "models.BigAutoField"
WITHOUT_CONSTRAINT = """
    from django.db import models

    class Visit(models.Model):
        order = models.ForeignKey(
            "shop.Order", models.DO_NOTHING, db_constraint=False
        )
"""
INSERT = "migrations.RunPython(lambda apps, _: apps.get_model('shop.Order')().save())"
SHOW = """
    from django.db import connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT order_id FROM visits_visit")
        print(*[row[0] for row in cursor.fetchall()])
"""


def a_shop(project, *apps, tag="Tag", table="tags", key=BIG):
    project.set(INSTALLED_APPS=["django.contrib.contenttypes", "django_hilo", *apps])
    project.write("shop/models.py", SHOP.format(key=key, tag=tag, table=table))


def write(project, name, *operations, after=(("shop", "0001_initial"),)):
    project.write(
        f"shop/migrations/{name}.py",
        f"""
        from django.db import migrations, models
        from django_hilo.fields import HiLoField
        from django_hilo.moving import MoveToHiLo

        class Migration(migrations.Migration):
            dependencies = {list(after)}
            operations = [{", ".join(operations)}]
        """,
    )


def moved(project, name="0002_hilo"):
    field = "HiLoField(max_length=64, primary_key=True, serialize=False)"
    after = ("django_hilo", "0001_initial"), ("shop", "0001_initial")
    write(project, name, f"MoveToHiLo('order', 'id', {field})", after=after)


CHAIN = """
    import uuid
    from django.db import models
    from django_hilo.fields import HiLoField

    class Customer(models.Model):
        id = {key}
        last = models.ForeignKey("Order", models.SET_NULL, null=True, related_name="+")

    class Order(models.Model):
        id = {key}
        customer = models.ForeignKey(Customer, models.CASCADE)

    class Line(models.Model):
        id = {key}
        order = models.ForeignKey(Order, models.CASCADE)
        payer = models.ForeignKey(Customer, models.CASCADE)
"""
FILL_CHAIN = """
    from shop.models import *
    for n in range(3):
        customer = Customer.objects.create()
        order = customer.last = Order.objects.create(customer=customer)
        customer.save()
        for payer in Customer.objects.all():
            Line.objects.create(order=order, payer=payer)
"""
READ_CHAIN = """
    import json
    from django.db import connection
    from shop.models import *
    connection.check_constraints()
    lines = Line.objects.select_related("order__customer__last", "payer__last")
    print(json.dumps(sorted(
        [str(line.order.customer.last.pk == line.order.pk), *map(str, [
            line.pk, line.order.pk, line.order.customer.pk, line.payer.pk,
            line.payer.last.pk,
        ])]
        for line in lines
    )))
"""


def rewrites(plan):
    """Return the tables that the steps of a plan copy, each as often as it is."""
    copies = {
        "sqlite": r'DROP TABLE "(shop_\w+)"',
        "postgres": r'ALTER TABLE "(shop_\w+)" ALTER COLUMN "?\w+"? TYPE',
    }
    modify = r"ALTER TABLE `(shop_\w+)` MODIFY"
    return sorted(re.findall(copies.get(CHOSEN, modify), plan))


@pytest.mark.parametrize("key", ["BigAutoField", "UUIDField"])
def test_moves_of_several_models_copy_a_shared_table_once(tmp_path, key):
    default = "default=uuid.uuid4" if key == "UUIDField" else ""
    old = f"models.{key}(primary_key=True, {default})"
    tables = ["shop_customer", "shop_line", "shop_order"]
    with project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        project.write("shop/models.py", CHAIN.format(key=old))
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "-v0")
        project.run(FILL_CHAIN)
        before = json.loads(project.run(READ_CHAIN))

        hilo = CHAIN.format(key="HiLoField(primary_key=True)")
        project.write("shop/models.py", hilo)
        project.manage("hilo_move_plan", "shop", "--write", "-n", "hilo", "-v0")
        plan = project.manage("hilo_move_plan", "shop", "0002")
        assert rewrites(plan) == tables
        assert plan.count("\n1. ") == 1
        project.manage("migrate", "-v0")
        moved = json.loads(project.run(READ_CHAIN))
        assert len(moved) == len(before) == 6
        assert {len(set(column)) for column in zip(*moved, strict=True)} == {1, 3, 6}
        if key == "BigAutoField":
            numbers = re.sub(r"(customers|orders|lines)/(\d)-A", r"\2", repr(moved))
            assert numbers == repr(before)

        plan = project.manage("hilo_move_plan", "shop", "0002", "--backwards")
        assert rewrites(plan) == tables
        project.manage("migrate", "shop", "0001", "-v0")
        project.write("shop/models.py", CHAIN.format(key=old))
        assert json.loads(project.run(READ_CHAIN)) == before


@pytest.mark.parametrize("later", ["another table", "another name"])
def test_generic_keys_that_a_later_migration_renames(tmp_path, later):
    """Both run at once, so that the installed model is ahead of the database."""
    with project_in(tmp_path) as project:
        a_shop(project, "shop")
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "-v0")
        project.run("""
            from shop.models import *
            Tag.objects.create(target=Order.objects.create())
        """)
        moved(project)
        if later == "another table":
            tag, operation = "Tag", "AlterModelTable('tag', 'labels')"
        else:
            tag, operation = "Label", "RenameModel('Tag', 'Label')"
        table = f"migrations.AlterModelTable({tag!r}, 'labels')"
        after = [("shop", "0002_hilo")]
        write(project, "0003_later", f"migrations.{operation}", table, after=after)
        a_shop(project, "shop", tag=tag, table="labels", key="HiLoField")
        project.manage("migrate", "-v0")
        found = project.run(f"""
            from shop.models import *
            print(*[each.target.pk for each in {tag}.objects.all()])
        """)
        assert found == "orders/1-A"


def test_generic_keys_that_a_later_migration_adds(tmp_path):
    with project_in(tmp_path) as project:
        a_shop(project, "shop")
        text = (project.folder / "shop/models.py").read_text()
        start, end = text.index("    content_type ="), text.index("    class Meta")
        project.write("shop/models.py", text[:start] + text[end:])
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "-v0")
        moved(project)
        a_shop(project, "shop", key="HiLoField")
        to_type = "models.ForeignKey('contenttypes.ContentType', models.CASCADE)"
        write(
            project,
            "0003_later",
            f"migrations.AddField('Tag', 'content_type', {to_type})",
            "migrations.AddField('Tag', 'object_id', models.CharField(max_length=64))",
            after=[
                ("contenttypes", "0002_remove_content_type_name"),
                ("shop", "0002_hilo"),
            ],
        )
        project.manage("migrate", "-v0")
        assert "No changes" in project.manage("makemigrations", "--check")


def test_references_of_no_constraint_and_no_dependency(tmp_path):
    with project_in(tmp_path) as project:
        a_shop(project, "shop", "visits")
        project.write("visits/models.py", WITHOUT_CONSTRAINT)
        project.manage("makemigrations", "shop", "visits", "-v0")
        project.manage("migrate", "-v0")
        project.run("""
            from visits.models import Visit
            from shop.models import Order
            Visit.objects.create(order=Order.objects.create())
        """)
        moved(project)
        a_shop(project, "shop", "visits", key="HiLoField")
        failed = project.manage("migrate", expect=1)
        assert "visits.Visit.order refers to shop.Order.id, but shop.0002" in failed
        assert 'Add ("visits", "0001_initial") to its dependencies.' in failed
        assert failed.splitlines()[-1].removeprefix(
            "django_hilo.exceptions.HiLoError: "
        ) in project.manage("hilo_move_plan", "shop", "0002", expect=1)
        assert project.run(SHOW) == "1"
        file = project.folder / "shop/migrations/0002_hilo.py"
        file.write_text(
            file.read_text().replace("[(", '[("visits", "0001_initial"), (', 1)
        )
        project.manage("migrate", "-v0")
        assert project.run(SHOW) == "orders/1-A"
        project.manage("migrate", "shop", "0001", "-v0")
        assert project.run(SHOW) == "1"


def test_references_of_an_app_without_migrations(tmp_path):
    with project_in(tmp_path) as project:
        a_shop(project, "shop", "visits")
        project.write("visits/models.py", WITHOUT_CONSTRAINT)
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "--run-syncdb", "-v0")
        moved(project)
        a_shop(project, "shop", "visits", key="HiLoField")
        # In a new database the table is of texts from the start, and empty.
        project.run("""
            from django.test.utils import get_runner, setup_databases
            from django.test.utils import teardown_databases
            teardown_databases(setup_databases(0, False), 0)
        """)
        failed = project.manage("migrate", expect=1)
        assert "visits.Visit.order refers to shop.Order.id" in failed


@pytest.mark.parametrize("number", [2, 3], ids=["rows before", "rows of the plan"])
def test_migrate_refuses_a_plain_alter_field_on_rows(tmp_path, number):
    with project_in(tmp_path) as project:
        a_shop(project, "shop")
        project.manage("makemigrations", "shop", "-v0")
        create = "from shop.models import Order; print(Order.objects.create().pk)"
        if number == 2:
            project.manage("migrate", "-v0")
            project.run(create)
        else:
            write(project, "0002_rows", INSERT)
        a_shop(project, "shop", key="HiLoField")
        project.manage("makemigrations", "shop", "-n", "hilo", "-v0")
        name = f"000{number}_hilo"
        failed = project.manage("migrate", expect=1).splitlines()[-1]
        assert f"CommandError: shop.{name} changes shop.order.id" in failed
        assert "django_hilo.moving.MoveToHiLo" in failed
        assert "hilo_move_plan shop --write" in failed
        assert f"[ ] {name}" in project.manage("showmigrations", "shop")
        file = project.folder / f"shop/migrations/{name}.py"
        text = file.read_text()
        file.write_text(text.replace("    dep", "    hilo_keeps_keys = True\n    dep"))
        project.manage("migrate", "-v0")
        assert project.run(create) == "orders/1-A"
