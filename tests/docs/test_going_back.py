"""docs/how-to/going-back.md, followed as it stands there."""

import re
from collections.abc import Iterator
from textwrap import dedent

import pytest

from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.projects import Project, project_in
from tests.support.tutorial import matches

PAGE = (PROJECT / "docs/how-to/going-back.md").read_text()
MODELS = """
    import uuid
    from django.db import models
    from django_hilo.fields import GaplessIdField, HiLoBigAutoField, HiLoField
    from django_hilo.managers import HiLoManager

    class Order(models.Model):
        id = {key}
        parent = models.ForeignKey("self", models.PROTECT, null=True)
        {manager}

    class OrderLine(models.Model):
        id = {key}
        order = models.ForeignKey(Order, models.PROTECT)
        {manager}
"""
BEFORE = MODELS.format(
    key="HiLoField(primary_key=True)", manager="objects = HiLoManager()"
)
FILL = """
    from shop.models import *
    parent = None
    for n in range(3):
        parent = Order.objects.create(parent=parent)
        OrderLine.objects.create(order=parent)
"""
LIST = """
    from shop.models import *
    print(list(Order.objects.order_by("id").values_list("id", "parent")))
    print(list(OrderLine.objects.order_by("id").values_list("id", "order")))
"""
IDS = "\n".join(
    [
        "[('orders/1-A', None), ('orders/2-A', 'orders/1-A'), "
        "('orders/3-A', 'orders/2-A')]",
        "[('OrderLines/1-A', 'orders/1-A'), ('OrderLines/2-A', 'orders/2-A'), "
        "('OrderLines/3-A', 'orders/3-A')]",
    ]
)
NUMBERS = re.sub(r"'\w+/(\d)-A'", r"\1", IDS)
DATABASE = """
    from django.db import connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM shop_order ORDER BY id")
        print(*[id for (id,) in cursor.fetchall()])
"""
CREATE = "from shop.models import *; print(Order.objects.create().pk)"
CHECK = "makemigrations", "--check"
EDITS = {
    r"django_hilo\.fields\.(hilo\.)?HiLoField\(.*?\)": "models.BigAutoField("
    "primary_key=True, serialize=False)",
    r"django_hilo\.managers\.HiLoManager\(\)": "models.Manager()",
    r" *django_hilo\.moving\.Move\w+\(\n(.*\n)*?        \),\n": "",
    r".*\(['\"]django_hilo['\"], .*\),\n": "",
    r"import django_hilo.*\n": "",
}
# As tests of the project make one.
NEW_DATABASE = """
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases
    from shop.models import Order
    assert "django_hilo" not in str(connection.introspection.table_names())
    old = setup_databases(0, False)
    print(Order.objects.create().pk)
    teardown_databases(old, 0)
"""


def commands(title: str) -> list[tuple[list[str], str]]:
    """Return the commands under a heading, and what each prints by the page."""
    [section] = re.findall(rf"^##+ {title}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    found: list[tuple[list[str], str]] = []
    for _, text in re.findall(r"^( *)```console\n(.*?)^ *```", section, re.M | re.S):
        for part in re.split(r"^\$ ", dedent(text), flags=re.M)[1:]:
            line, _, printed = part.partition("\n")
            python, manage, *arguments = line.split()
            assert (python, manage) == ("python", "manage.py")
            found.append((arguments, printed.strip()))
    return found


def follow(project: Project, title: str) -> None:
    for arguments, printed in commands(title):
        found = project.manage(*arguments)
        assert not printed or matches(printed, found), found


@pytest.fixture
def shop(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        yield project


def change(project: Project, **parts: str) -> None:
    project.write("shop/models.py", MODELS.format(**{"manager": "", **parts}))


def test_from_text_ids_and_without_the_app(shop):
    shop.write("shop/models.py", BEFORE)
    shop.migrate("shop")
    shop.run(FILL)
    assert shop.run(LIST) == IDS
    [models] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    shop.write("shop/models.py", dedent(models))
    follow(shop, "From text ids")
    assert shop.run(LIST) == NUMBERS

    plan = shop.manage("hilo_move_plan", "shop", "0002", "--backwards")
    assert "Raise the counter of 'orders'" in plan
    shop.manage("migrate", "shop", "0001", "-v0")
    assert shop.run(DATABASE) == "orders/1-A orders/2-A orders/3-A"
    shop.manage("migrate", "-v0")
    assert shop.run(LIST) == NUMBERS
    assert int(shop.run(CREATE)) > 3

    edit_migrations(shop)
    assert "No changes" in shop.manage(*CHECK)
    follow(shop, "Remove the app")
    shop.set(INSTALLED_APPS=["shop"])
    assert "No changes" in shop.manage(*CHECK)
    assert int(shop.run(CREATE)) > 4
    assert shop.run(NEW_DATABASE) == "1"


def edit_migrations(shop: Project) -> None:
    for file in (shop.folder / "shop/migrations").glob("0*.py"):
        text = file.read_text()
        for old, new in EDITS.items():
            text = re.sub(old, new, text)
        assert "django_hilo" not in text, text
        file.write_text(text)


def test_numbers_that_clash(shop):
    shop.write("shop/models.py", BEFORE)
    shop.migrate("shop")
    shop.run(FILL)
    shop.run(
        """
        from shop.models import *
        OrderLine.objects.create(order=Order.objects.create(pk="orders/3-B"))
        """
    )
    big = "models.BigAutoField(primary_key=True)"
    change(shop, key=big)
    shop.manage("hilo_move_plan", "shop", "--write", "--name", "integers")
    refused = shop.manage("migrate", expect=1)
    assert "'orders/3-A' and 'orders/3-B' have the same one" in refused
    (shop.folder / "shop/migrations/0002_integers.py").unlink()
    for number, key in enumerate(
        [
            "models.UUIDField(primary_key=True, default=uuid.uuid4)",
            "HiLoField(primary_key=True)",
            big,
        ],
        2,
    ):
        change(shop, key=key)
        shop.manage("hilo_move_plan", "shop", "--write", "--name", f"m{number}")
        shop.manage("migrate")
        assert "No changes" in shop.manage(*CHECK)
    found = shop.run(
        """
        from shop.models import *
        order = Order.objects.get(parent__parent__isnull=False)
        print(order.parent.parent.parent_id, Order.objects.filter(pk__gt=3).count(),
              OrderLine.objects.filter(order__pk__gt=3).count())
        """
    )
    assert found == "None 4 4"


@pytest.mark.servers
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("HiLoBigAutoField(primary_key=True)", "models.BigAutoField(primary_key=True)"),
        (
            "HiLoField(primary_key=True)",
            "models.CharField(max_length=64, primary_key=True)",
        ),
        (
            "GaplessIdField(primary_key=True)",
            "models.CharField(max_length=64, primary_key=True)",
        ),
    ],
)
def test_what_is_not_converted(shop, old, new):
    change(shop, key=old)
    shop.migrate("shop")
    shop.run(FILL)
    keys = shop.run(LIST)
    if "BigAuto" in new:
        shop.run("from shop.models import *; OrderLine.objects.get(pk=3).delete()")
        keys = shop.run(LIST)
    change(shop, key=new)
    shop.migrate("shop")
    assert shop.run(LIST) == keys
    if "BigAuto" in new:
        made = shop.run(
            "from shop.models import *\n"
            "print(OrderLine.objects.create(order=Order.objects.first()).pk)"
        )
        assert (made == "3") is (CHOSEN == "sqlite")
