"""`hilo_move_plan --write`, and the migrations that it writes."""

import pytest
from django.core.management import CommandError, call_command

from tests.support.projects import Project, project_in

pytestmark = pytest.mark.usefixtures("unblocked")

# Two keys that move, one of them with an option for new ids alone, and one that stays.
SHOP = """
    import uuid
    from django.db import models
    from django_hilo.fields import HiLoField
    from django_hilo.managers import HiLoManager

    class Order(models.Model):
        {order}
        name = models.CharField(max_length=10)

        class Meta:
            indexes = {indexes}

    class OrderLine(models.Model):
        {line}
        order = models.ForeignKey(Order, models.CASCADE)
        name = models.CharField(max_length=10)

    class Note(models.Model):
        id = models.BigAutoField(primary_key=True)
        line = models.ForeignKey(OrderLine, models.CASCADE)
"""
OLD = {
    "order": "id = models.BigAutoField(primary_key=True)",
    "line": "id = models.UUIDField(primary_key=True, default=uuid.uuid4)",
    "indexes": "[]",
}
NEW = {
    "order": "id = HiLoField(primary_key=True); objects = HiLoManager()",
    "line": "id = HiLoField(primary_key=True, anchor='order')",
    "indexes": "[models.Index('id__number', name='by_number')]",
}
# Refer to an order, one of them by way of the other, which has a later migration.
VISITS = """
    from django.db import models

    class Visit(models.Model):
        order = models.OneToOneField("shop.Order", models.CASCADE, primary_key=True)
"""
STAYS = """
    from django.db import models

    class Stay(models.Model):
        visit = models.ForeignKey("visits.Visit", models.CASCADE)
"""
MIGRATE = """
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
"""
FILL = """
    from shop.models import *; from stays.models import *; from visits.models import *
    for name in "ab":
        order = Order.objects.create(name=name)
        Note.objects.create(line=OrderLine.objects.create(order=order, name=name))
        Stay.objects.create(visit=Visit.objects.create(order=order))
"""
SHOW = """
    from shop.models import *; from stays.models import *; from visits.models import *
    for note in Note.objects.order_by("id"):
        stay = Stay.objects.get(visit__order__name=note.line.name)
        print(note.line.name, stay.visit_id, note.line.order_id, note.line.id)
"""


@pytest.fixture
def unblocked(django_db_blocker):
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def shop(tmp_path):
    """A shop whose migrations are made, but not applied."""
    with project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop", "visits", "stays"])
        project.write("shop/models.py", SHOP.format(**OLD))
        project.write("visits/models.py", VISITS)
        project.write("stays/models.py", STAYS)
        project.run("""
            from django.core.management import call_command
            call_command("makemigrations", "shop", "visits", "stays", verbosity=0)
            call_command("makemigrations", "stays", empty=True, name="later")
        """)
        yield project


def migrations(project: Project) -> set[str]:
    return {each.name for each in (project.folder / "shop/migrations").glob("0*.py")}


@pytest.mark.servers
def test_several_keys_there_and_back(shop):
    before = shop.run(MIGRATE + FILL + SHOW)
    shop.write("shop/models.py", SHOP.format(**NEW))
    shop.manage("hilo_move_plan", "shop", "--write")
    (file,) = migrations(shop) - {"0001_initial.py"}
    assert "_move_order_to_hilo_" in file
    check_code((shop.folder / "shop/migrations" / file).read_text())

    assert "Nothing was changed." in shop.manage("hilo_move_plan", "shop", "0002")
    moved = shop.run(MIGRATE + SHOW + FILL.replace('"ab"', '"c"') + SHOW)
    a, b, *_, c = [line.split() for line in moved.splitlines()]
    assert a[:3] == ["a", "orders/1-A", "orders/1-A"]
    assert b[:3] == ["b", "orders/2-A", "orders/2-A"]
    assert {a[3], b[3]} == {"OrderLines/1-A", "OrderLines/2-A"}  # by their UUIDs
    assert c == ["c", "orders/3-A", "orders/3-A", "OrderLines/3-A$orders/3-A"]

    shop.run("""
        from django.core.management import call_command
        from shop.models import Order
        call_command("makemigrations", check=True)
        Order.objects.get(name="c").delete()
        call_command("migrate", "shop", "0001", verbosity=0)
    """)
    shop.write("shop/models.py", SHOP.format(**OLD))
    assert shop.run(SHOW) == before


def check_code(written: str) -> None:
    """Fail if a migration is not one of both moves and all that they need."""
    code = written.replace("'", '"')  # as it is formatted where ruff is found
    for app, name in [
        ("django_hilo", "0001_initial"),
        ("shop", "0001_initial"),
        ("stays", "0002_later"),
        ("visits", "0001_initial"),
    ]:
        assert code.count(f'("{app}", "{name}"),') == 1, code
    first, second = code.split("django_hilo.moving.MoveToHiLo(")[1:]
    assert 'model_name="order"' in first
    assert "AlterField" not in first
    moved, altered = second.split("migrations.AlterField(")
    assert "anchor" not in moved
    assert 'anchor="order"' in altered


def test_nothing_is_written_after_makemigrations(shop):
    shop.write("shop/models.py", SHOP.format(**NEW))
    shop.manage("makemigrations", "shop", "-n", "plain", "-v0")
    failed = shop.manage("hilo_move_plan", "shop", "--write", expect=1)
    assert "CommandError: No key changed from an integer or UUID" in failed
    assert migrations(shop) == {"0001_initial.py", "0002_plain.py"}


def test_no_file_is_overwritten(shop):
    # Its name has no number, so that Django begins to count anew.
    shop.write(
        "shop/migrations/later.py",
        """
        from django.db import migrations

        class Migration(migrations.Migration):
            dependencies = [("shop", "0001_initial")]
        """,
    )
    shop.write("shop/models.py", SHOP.format(**NEW))
    file = shop.folder / "shop/migrations/0001_initial.py"
    before = file.read_text()
    command = "hilo_move_plan", "shop", "--write", "--name", "initial"
    failed = shop.manage(*command, expect=1)
    assert "CommandError: shop.0001_initial exists already" in failed
    assert file.read_text() == before


@pytest.mark.parametrize("arguments", [[], ["0001", "--write"]])
def test_either_a_migration_or_a_new_one(arguments):
    with pytest.raises(CommandError, match="migration_name"):
        call_command("hilo_move_plan", "shop", *arguments)
