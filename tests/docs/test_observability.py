"""What docs/how-to/observability.md shows and promises."""

import ast
import logging
import re
import sys
from collections.abc import Callable, Iterator
from logging.config import dictConfig
from types import ModuleType
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.dispatch import Signal
from django.test import RequestFactory
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from django_hilo import signals
from django_hilo._database import retry as counters_retry
from django_hilo._database.dialects import ErrorKind
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
OF_ORDERS = {"database": "default", "collection": "orders", "node_tag": "A"}


@pytest.fixture
def load() -> Iterator[Callable[[str], ModuleType]]:
    """Run a file of the page, and disconnect its receivers afterwards."""
    before = {
        signal: list(signal.receivers) for signal in (range_reserved, range_returned)
    }
    modules = []

    def run(path: str) -> ModuleType:
        module = ModuleType("tests.of_the_page")
        exec(compile(FILES[path], path, "exec"), vars(module))
        modules.append(module)  # signals hold receivers by weak references
        return module

    yield run
    for signal, receivers in before.items():
        signal.receivers[:] = receivers
        signal.sender_receivers_cache.clear()


class TestRecipes:
    @pytest.fixture
    def reader(self, monkeypatch) -> InMemoryMetricReader:
        reader = InMemoryMetricReader()
        provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
        monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
        return reader

    @pytest.fixture
    def spans(self) -> tuple[InMemorySpanExporter, Any]:
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return exporter, provider.get_tracer("tests")

    def test_opentelemetry(self, load, reader, spans):
        load("shop/telemetry.py")
        exporter, tracer = spans
        with tracer.start_as_current_span("request"):
            next_id(Order)
            next_id(Order)
        return_ranges()
        next_numbers("tickets", 100)
        data = reader.get_metrics_data()
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        found = {
            (metric.name, point.attributes["hilo.collection"]): point
            for metric in scope.metrics
            for point in metric.data.data_points
        }
        assert {key: point.value for key, point in found.items()} == {
            ("hilo.ranges.reserved", "orders"): 1,
            ("hilo.numbers.reserved", "orders"): 32,
            ("hilo.ranges.reserved", "tickets"): 1,
            ("hilo.numbers.reserved", "tickets"): 100,
            ("hilo.ranges.returned", "orders"): 1,
        }
        of = {f"hilo.{name}": value for name, value in OF_ORDERS.items()}
        assert dict(found["hilo.ranges.returned", "orders"].attributes) == of
        (span,) = exporter.get_finished_spans()
        (event,) = span.events
        assert event.name == "hilo.range_reserved"
        assert dict(event.attributes) == {**of, "hilo.low": 1, "hilo.high": 32}

    def test_prometheus(self, load, monkeypatch):
        before = set(REGISTRY._collector_to_names)
        module = load("shop/metrics.py")
        package = ModuleType("shop")
        vars(package)["metrics"] = module
        monkeypatch.setitem(sys.modules, "shop", package)
        monkeypatch.setitem(sys.modules, "shop.metrics", module)
        logger = logging.getLogger("django_hilo")
        handlers, level = list(logger.handlers), logger.level
        try:
            next_id(Order)
            next_numbers("tickets", 100)
            assert value("hilo_reserved_ranges_total", **OF_ORDERS) == 1
            assert value("hilo_reserved_numbers_total", **OF_ORDERS) == 32
            assert value("hilo_highest_number", **OF_ORDERS) == 32
            tickets = {**OF_ORDERS, "collection": "tickets"}
            assert value("hilo_highest_number", **tickets) == 100
            dictConfig(self.logging())
            logger.debug("a range")
            logger.warning("a retry")
            assert value("hilo_log_records_total", level="WARNING") == 1
            assert value("hilo_log_records_total", level="ERROR") == 0
            assert value("hilo_log_records_total", level="DEBUG") is None
            (shown,) = re.findall(r"^(hilo_\S+\{.*\}) 32\.0$", PAGE, re.MULTILINE)
            assert f"{shown} 32.0" in self.answer().splitlines()
            named = set(re.findall(r"\bhilo_\w+", PAGE.split("```yaml")[1][:900]))
            assert named == {
                "hilo_log_records_total",
                "hilo_reserved_ranges_total",
                "hilo_highest_number",
            }
        finally:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            for collector in set(REGISTRY._collector_to_names) - before:
                REGISTRY.unregister(collector)

    def answer(self) -> str:
        """Return what Prometheus is answered."""
        urls: dict[str, Any] = {"__name__": "urls", "urlpatterns": []}
        exec(FILES["urls.py"], urls)
        (pattern,) = urls["urlpatterns"]
        assert pattern.resolve("metrics")
        return pattern.callback(RequestFactory().get("/metrics")).content.decode()

    def logging(self) -> dict[str, Any]:
        read: dict[str, Any] = {}
        exec(FILES["settings.py"], read)
        del read["LOGGING"]["handlers"]["console"]
        read["LOGGING"]["loggers"]["django_hilo"]["handlers"].remove("console")
        return read["LOGGING"]


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


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

    def test_each_argument_is_explained(self):
        for signal in ("range_reserved", "range_returned", "counter_changed"):
            assert isinstance(getattr(signals, signal), Signal)
            assert f"| `{signal}` |" in PAGE


class TestTheLog:
    def test_there_is_one_logger(self):
        names = [
            ast.literal_eval(call.args[0])
            for file in PACKAGE.rglob("*.py")
            for call in ast.walk(ast.parse(file.read_text()))
            if isinstance(call, ast.Call) and "getLogger" in ast.unparse(call.func)
        ]
        assert set(names) == {"django_hilo"}
        assert len(names) > 5

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

    def test_the_first_retry_is_a_warning(self, caplog, monkeypatch):
        monkeypatch.setattr(counters_retry, "classify", lambda *_: ErrorKind.RETRY)
        caplog.set_level(logging.DEBUG, "django_hilo")
        failing = iter([True, True])

        def operate(db: str) -> str:
            if next(failing, False):
                raise OperationalError("deadlock")
            return "done"

        done = counters_retry.retry(operate, "default", "A counter", if_missing="")
        assert done == "done"
        assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
