"""docs/how-to/integer-keys.md: how keys start at 1000, and how they do not."""

import re

import pytest

from tests.support.databases import CHOSEN
from tests.support.pages import NAMES, blocks, fences, page
from tests.support.projects import Project, project_in

PAGE = page("how-to/integer-keys.md")
WAYS = re.findall(r"^\| `(.+)` \| (on .+|no) \|$", PAGE.read_text(), re.MULTILINE)
# Elsewhere it is no statement.
OF_ONE = {
    "SEQUENCE": ["postgres"],
    "AUTO_INCREMENT": ["mariadb", "mysql"],
    "sqlite_sequence": ["sqlite"],
}


@pytest.fixture
def shop(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        models = fences(PAGE)[0].text
        project.write("shop/models.py", f"from django.db import models\n{models}")
        project.manage("makemigrations", "shop")
        yield project


def first_key(project: Project) -> str:
    code = "from shop.models import Order; print(Order.objects.create().pk)"
    return project.run(code)


def test_the_call(shop):
    [migration] = blocks(PAGE, "Start at 1000", "python")
    shop.write("shop/migrations/0002_start_at_1000.py", migration)
    shop.manage("migrate")
    assert first_key(shop) == "1000"


@pytest.mark.parametrize(("way", "works"), WAYS)
def test_instead(shop, way, works):
    if any(CHOSEN not in where for word, where in OF_ONE.items() if word in way):
        pytest.skip("of another database")
    shop.manage("migrate")
    is_python = "(" in way
    code = f"""
        from django.db import connection
        from django_hilo import counters
        from django_hilo.models import HiLoDocument
        {way if is_python else f'connection.cursor().execute("{way}")'}
    """
    shop.run(code)
    starts = re.match(rf"on .*\b{NAMES[CHOSEN]}\b", works)
    if "not before the first row" in works:
        assert first_key(shop) == "1"
        shop.run(code)
    assert (first_key(shop) == "1000") is bool(starts)


def test_there_are_ways_to_test():
    assert len(WAYS) == 6
