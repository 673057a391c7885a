"""What docs/how-to/observability.md shows and promises."""

import ast
import logging
import re
from typing import Any

import pytest
from django.db import connection, transaction

from django_hilo.counters import Range, Reservation
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_id, next_numbers, return_ranges
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved, range_returned
from tests.apps.records.models import Order
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (PROJECT / "docs/how-to/observability.md").read_text()
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
PACKAGE = PROJECT / "django_hilo"


class TestMetrics:
    def test_prometheus(self, python):
        """In a process of its own, which has counted nothing before."""
        code = """
import sys
from django.test import RequestFactory
from django_hilo.generator import next_id
of_apps, of_urls = {"__name__": "shop"}, {"urlpatterns": []}
exec(sys.argv[1], of_apps)
exec(sys.argv[2], of_urls)
of_apps["ShopConfig"].ready(None)
next_id(Order)
(page,) = of_urls["urlpatterns"]
assert page.resolve("metrics")
print(page.callback(RequestFactory().get("/metrics")).content.decode())
"""
        printed = python(code, FILES["shop/apps.py"], FILES["urls.py"])
        (shown,) = re.findall(r"^(hilo_\S+\{.*\} 32\.0)$", PAGE, re.MULTILINE)
        assert shown in printed.splitlines()
        served = set(re.findall(r"^(hilo_\w+)\{", printed, re.MULTILINE))
        created = {name for name in served if name.endswith("_created")}
        listed = re.findall(r"^\| `(hilo_\w+)` \|", PAGE, re.MULTILINE)
        assert served - created == set(listed)
        alerts = PAGE.split("```yaml")[1].split("```")[0]
        assert set(re.findall(r"\bhilo_\w+", alerts)) <= served

    def test_opentelemetry(self):
        code = (PACKAGE / "metrics/opentelemetry.py").read_text()
        named = set(re.findall(r'"(hilo\.\w+(?:\.\w+)?)"', code))
        assert named == set(re.findall(r"`(hilo\.\w+(?:\.\w+)?)`", PAGE))


class TestSignals:
    def test_arguments(self, receive):
        told = []
        receive(range_reserved, lambda **facts: told.append(facts))
        receive(range_returned, lambda **facts: told.append(facts))
        next_id(Order)
        return_ranges()
        reserved, returned = told
        assert reserved.pop("signal") is range_reserved
        assert returned.pop("signal") is range_returned
        ticket = reserved["reservation"].ticket
        reservation = Reservation("orders", "A", Range(1, 32), "", ticket)
        assert reserved == {
            "sender": HiLoDocument,
            "using": "default",
            "reservation": reservation,
        }
        assert ticket
        assert ticket not in repr(reservation)
        assert returned == {
            "sender": HiLoDocument,
            "using": "default",
            "collection": "orders",
            "node_tag": "A",
            "last": 1,
        }

    def test_run_when_the_range_is_committed(self, receive):
        open_ = []
        receive(range_reserved, lambda **_: open_.append(connection.in_atomic_block))
        next_id(Order)
        with transaction.atomic():
            next_numbers("tickets", 1)
        assert open_ == [False, True]
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            next_numbers("letters", 1)
            raise ZeroDivisionError
        stays = HiLoDocument.objects.filter(collection="letters", max=32).exists()
        assert stays is (CHOSEN != "sqlite")

    def test_errors_stop_nobody(self, receive, heard, caplog):
        def fail(**facts: Any) -> None:
            raise ValueError("the exporter is away")

        receive(range_reserved, fail)
        told = heard(range_reserved)
        assert next_id(Order) == "orders/1-A"
        assert told
        (record,) = [r for r in caplog.records if r.name == "django.dispatch"]
        assert "the exporter is away" in str(record.exc_info)

    def test_but_those_that_doom_the_transaction(self, receive):
        def fail(**facts: Any) -> None:
            with transaction.atomic(savepoint=False):
                connection.cursor().execute("SELECT * FROM no_such_table")

        receive(range_reserved, fail)
        assert next_id(Order) == "orders/1-A"
        with pytest.raises(HiLoError, match="signal receiver"), transaction.atomic():
            next_id("tickets")


class TestTheLog:
    def test_levels_are_those_of_the_page(self):
        used = {
            call.func.attr.replace("exception", "error")
            for file in PACKAGE.rglob("*.py")
            for call in ast.walk(ast.parse(file.read_text()))
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and ast.unparse(call.func.value) == "logger"
        } - {"log"}  # retry.py: WARNING the first time, then DEBUG
        table = PAGE.split("## The log")[1].split("## ")[0]
        explained = re.findall(r"^\| `([A-Z]+)` \|", table, re.MULTILINE)
        assert {level.upper() for level in used} == set(explained)

    def test_ranges_are_debug(self, caplog):
        caplog.set_level(logging.DEBUG, "django_hilo")
        next_id(Order)
        return_ranges()
        said = [(r.levelname, r.getMessage()) for r in caplog.records]
        assert [level for level, _ in said] == ["DEBUG", "DEBUG"]
        assert "Reserved on 'default'" in said[0][1]
        assert "Returned on 'default': 2 to 32 of orders" in said[1][1]
        assert HiLoDocument.objects.get().ticket not in said[0][1]
