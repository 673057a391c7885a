"""docs/how-to/existing-table.md, followed as it stands there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from textwrap import dedent

import pytest

from tests.support.commands import PROJECT, run
from tests.support.databases import CHOSEN
from tests.support.projects import Project, project_in
from tests.support.tutorial import matches

PAGE = (PROJECT / "docs/how-to/existing-table.md").read_text()
BACK = (PROJECT / "docs/how-to/going-back.md").read_text()
BEFORE = """
    from django.db import models

    class Order(models.Model):
        parent = models.ForeignKey("self", models.PROTECT, null=True)

    class OrderLine(models.Model):
        order = models.ForeignKey(Order, models.PROTECT)
"""
FILL = """
    from shop.models import *
    for n in range(3):
        order = Order.objects.create(parent_id=n or None)
        OrderLine.objects.create(order=order)
"""
LIST = """
    from shop.models import *
    print(list(Order.objects.order_by("id").values_list("id", "parent")))
    print(list(OrderLine.objects.order_by("id").values_list("order", flat=True)))
"""
IDS = "\n".join(
    [
        "[('orders/1-A', None), ('orders/2-A', 'orders/1-A'), "
        "('orders/3-A', 'orders/2-A')]",
        "['orders/1-A', 'orders/2-A', 'orders/3-A']",
    ]
)

# Prints for each piece of code the numbers that it finds, or its error.
NUMBERS = r"""
    import re, sys
    from django.core.exceptions import ObjectDoesNotExist
    from django.db import IntegrityError
    from django.db.models import Max, QuerySet
    from django.urls import path
    from django_hilo.identifiers import parse
    from shop.models import *

    def view(request, pk): pass

    def number(found):
        if isinstance(found, OrderLine):
            found = found.order_id
        return int(re.search(r"\d+", str(getattr(found, "pk", found)))[0])

    order = next(each for each in Order.objects.all() if number(each) == 5)
    for code in sys.argv[1:]:
        try:
            found = eval(code)
        except (IntegrityError, ObjectDoesNotExist, ValueError) as error:
            print(type(error).__name__)
            continue
        if hasattr(found, "resolve"):
            match = found.resolve(f"orders/{order.pk}/")
            print(number(match.kwargs["pk"]) if match else 404)
        elif isinstance(found, QuerySet):
            numbers = [*map(number, found)]
            print(numbers if found.ordered else sorted(numbers))
        else:
            print(number(found))
        if "create" in code:
            found.delete()
"""


def section(title: str) -> str:
    pattern = rf"^##+ {title}\n(.*?)(?=^##|\Z)"
    (found,) = re.findall(pattern, PAGE + BACK, re.M | re.S)
    return found


def blocks(title: str, language: str) -> Iterator[str]:
    for _, text in re.findall(
        rf"^( *)```{language}\n(.*?)^ *```", section(title), re.M | re.S
    ):
        yield dedent(text)


def commands(text: str) -> list[tuple[list[str], str]]:
    """Return the commands of a block, and what each prints by the page."""
    found: list[tuple[list[str], str]] = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, printed = part.partition("\n")
        python, manage, *arguments = line.split()
        assert (python, manage) == ("python", "manage.py")
        found.append((arguments, printed.strip()))
    return found


@pytest.fixture
def shop(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        project.write("shop/models.py", BEFORE)
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "-v0")
        project.run(FILL)
        yield project


def steps_up_to(project: Project, last: str) -> None:
    """Follow "Step by step" up to a command."""
    (models,) = blocks("Step by step", "python")
    project.write("shop/models.py", models)
    for block in blocks("Step by step", "console"):
        for arguments, printed in commands(block):
            if arguments[0] == last:
                return
            # The plan is that of PostgreSQL.
            is_ours = CHOSEN == "postgres" or "0002" not in arguments
            found = project.manage(*arguments)
            assert not (printed and is_ours) or matches(printed, found), found


def test_step_by_step_and_back(shop):
    before = shop.run(LIST)
    steps_up_to(shop, "")
    assert shop.run(LIST) == IDS
    plan = shop.manage("hilo_move_plan", "shop", "0002", expect=1)
    assert "shop.0002_hilo is applied on 'default', so there is nothing" in plan
    for block in blocks("Undo a move", "console"):
        for arguments, _ in commands(block):
            shop.manage(*arguments)
    shop.write("shop/models.py", BEFORE)
    assert shop.run(LIST) == before
    plan = shop.manage("hilo_move_plan", "shop", "0002", "--backwards", expect=1)
    assert "is not applied on 'default'" in plan
    assert "no migration" in shop.manage("hilo_move_plan", "shop", "9", expect=1)
    assert "contains no MoveToHiLo" in shop.manage(
        "hilo_move_plan", "shop", "0001", "--backwards", expect=1
    )


@pytest.mark.parametrize(
    "command", [["hilo_move_plan", "shop", "0002"], ["hilo_show"]], ids=lambda c: c[0]
)
def test_a_reader_that_stops(shop, command):
    """As head does; Django's own commands end in a traceback."""
    steps_up_to(shop, "migrate")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "django", *command],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=shop.folder,
        env=shop.environment,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_squashed(shop):
    steps_up_to(shop, "migrate")
    shop.manage("migrate")
    shop.manage("squashmigrations", "shop", "0002", "--no-input")
    (file,) = (shop.folder / "shop/migrations").glob("*squashed*")
    text = file.read_text()
    assert "django_hilo.moving.MoveToHiLo(" in text
    assert "django_hilo.moving.operations" not in text
    assert "No changes" in shop.manage("makemigrations", "--check")
    # A new database is made by it alone.
    for replaced in ("0001_initial", "0002_hilo"):
        (shop.folder / f"shop/migrations/{replaced}.py").unlink()
    file.write_text(re.sub(r"replaces = \[.*?\]", "replaces = []", text, flags=re.S))
    shop.manage("migrate", "shop", "zero", "--fake")
    shop.run(
        """
        from django.db import connection
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE shop_orderline")
            cursor.execute("DROP TABLE shop_order")
        """
    )
    shop.manage("migrate")
    shop.run(
        "from shop.models import *\n"
        "OrderLine.objects.create(order=Order.objects.create())"
    )
    assert "['orders/" in shop.run(LIST)


def test_numbers_in_your_code(shop, tmp_path):
    text = section("Numbers in your code")
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| `(.+?)` \|$", text, re.M)
    assert len(rows) == text.count("\n| ") - 1
    (search,) = blocks("Numbers in your code", "console")
    old = tmp_path / "old"
    old.mkdir()
    (old / "code.py").write_text("\n".join(code for code, _, _ in rows))
    done = run("bash", "-c", search.removeprefix("$ "), cwd=old)
    assert len(done.stdout.splitlines()) == len(rows)

    shop.run(FILL * 4)
    numbers = shop.run(NUMBERS, *(code for code, _, _ in rows)).splitlines()
    steps_up_to(shop, "migrate")
    shop.manage("migrate")
    afterwards = shop.run(NUMBERS, *(code for code, _, _ in rows)).splitlines()
    assert shop.run(NUMBERS, *(code for _, _, code in rows)).splitlines() == numbers
    for (_, effect, _), before, after in zip(rows, numbers, afterwards, strict=True):
        assert after != before
        if effect == "sorts as text":
            assert after.strip("[").startswith("9")
        else:
            found = {"[]": "finds nothing", str([*range(1, 16)]): "finds all"}
            assert found.get(after, after) == effect.strip("`")
