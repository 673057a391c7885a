"""The rights on our tables that the guides ask for are enough to take numbers."""

import os
import re
from collections.abc import Iterator

import pytest
from django.db import connection

from tests.support.databases import CHOSEN
from tests.support.pages import page
from tests.support.sql import execute

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN == "sqlite", reason="it has no roles"),
]

OURS = {
    f"django_hilo_{model}"
    for model in ("hilodocument", "serverprefix", "gaplesscounter")
}
WORK = """
from django.core.management import call_command
from django.db import DatabaseError, connections
from django_hilo._operations.server_prefixes import set_prefix
from django_hilo.counters import *
from django_hilo.generator import next_id, return_ranges
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item

connections["default"].settings_dict["USER"] = %r
assert next_id(Order) == "orders/1-A"
Order.objects.create(pk="orders/90-A")
Order.objects.bulk_create([Order() for _ in range(100)])
set_prefix("A", "North/", using="default", user=None)
ticket = reserve("letters", 8).ticket
assert return_range("letters", 8, 3, ticket) == 3
assert raise_floor("letters", 20) == 20
assert next_id("letters") == "letters/North/21-A"
assert seed_gapless_number("invoices", 7) == 7
assert next_gapless_number("invoices") == 8
assert Item.objects.create().pk < Item.objects.create().pk
Order.objects.filter(pk="orders/90-A").update(id="orders/900-A")
call_command("hilo_raise_max", "orders", "numbers.Item", verbosity=0)
assert read_max("orders") == 900
assert return_ranges() > 0
try:
    HiLoDocument.objects.all().delete()
except DatabaseError:
    print("It may not delete.")
"""


def rights_of_the_guide() -> list[str]:
    text = " ".join(page("how-to/security.md").read_text().split())
    pattern = r"((?:[A-Z]+, )*[A-Z]+ and [A-Z]+) on the three tables"
    (named,) = re.findall(pattern, text)
    return re.findall("[A-Z]+", named)


@pytest.fixture
def role() -> Iterator[str]:
    name = f"hilo_site_{os.getpid()}"
    kind, user = ("ROLE", name) if CHOSEN == "postgres" else ("USER", f"'{name}'@'%'")
    rights = ", ".join(rights_of_the_guide())
    execute(f"CREATE {kind} {user}" + " LOGIN" * (kind == "ROLE"))
    try:
        for table in connection.introspection.table_names():
            allowed = rights if table in OURS else "ALL"
            execute(f"GRANT {allowed} ON {table} TO {user}")
        if kind == "ROLE":
            execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {user}")
        yield name
    finally:
        if kind == "ROLE":
            execute(f"DROP OWNED BY {user}")
        execute(f"DROP {kind} {user}")


def test_of_the_site(role, python):
    assert python(WORK % role) == "It may not delete."
