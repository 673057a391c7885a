"""django_hilo.metrics.prometheus, read by Prometheus's own client."""

import logging
from collections.abc import Iterator

import pytest
from django.test import RequestFactory
from prometheus_client import REGISTRY

from django_hilo.counters import read_max
from django_hilo.generator import next_id, next_numbers
from django_hilo.metrics import prometheus
from django_hilo.signals import range_reserved
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True)

LABELS = {"database": "default", "node_tag": "A"}
logger = logging.getLogger("django_hilo")


@pytest.fixture(autouse=True)
def connected() -> Iterator[None]:
    for metric in (prometheus._RANGES, prometheus._NUMBERS, prometheus._HIGHEST):
        metric.clear()
    prometheus.connect()
    yield
    range_reserved.disconnect(dispatch_uid=prometheus.__name__)
    logger.removeFilter(prometheus._count_record)


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def counted(collection: str) -> list[float | None]:
    names = "reserved_ranges_total", "reserved_numbers_total", "highest_number"
    labels = {**LABELS, "collection": collection}
    return [value(f"hilo_{name}", **labels) for name in names]


def test_ranges_and_numbers():
    next_id(Order)
    next_id(Order)
    next_numbers("tickets", 100)
    next_numbers("tickets", 100)
    assert counted("orders") == [1, 32, 32]
    assert counted("tickets") == [2, 200, 200]


def test_the_gauge_is_below_what_others_reserved(python):
    next_id(Order)
    python("from django_hilo.generator import next_id; next_id(Order)")
    assert counted("orders") == [1, 32, 32]
    assert read_max("orders") == 33  # it returned the others


def test_connected_twice_counts_once():
    prometheus.connect()
    next_id(Order)
    assert counted("orders") == [1, 32, 32]


def test_log_records(caplog):
    def logged() -> list[float | None]:
        levels = "DEBUG", "WARNING", "ERROR"
        return [value("hilo_log_records_total", level=each) for each in levels]

    _, warnings, errors = logged()
    assert None not in (warnings, errors)  # before the first one, too
    caplog.set_level(logging.DEBUG, "django_hilo")
    logger.debug("a range")
    logger.warning("a retry")
    assert logged() == [None, warnings + 1, errors]
    assert [each.getMessage() for each in caplog.records] == ["a range", "a retry"]


def test_the_log_goes_where_it_went(python):
    code = """
from django_hilo.metrics import prometheus
prometheus.connect()
import logging, sys
sys.stderr = sys.stdout
logging.getLogger("django_hilo").warning("a retry")
"""
    assert python(code) == "a retry"


def test_the_page_of_one_process():
    next_id(Order)
    answer = prometheus.metrics_view(RequestFactory().get("/metrics"))
    assert answer["Content-Type"].startswith("text/plain")
    line = 'hilo_highest_number{collection="orders",database="default",node_tag="A"}'
    assert f"{line} 32.0" in answer.content.decode().splitlines()


def test_the_page_of_several_processes(python, tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    for size in (32, 1000):
        python(
            f"""
from django_hilo.generator import next_numbers
from django_hilo.metrics import prometheus
prometheus.connect()
next_numbers("tickets", {size})
"""
        )
    printed = python(
        """
from django.test import RequestFactory
from django_hilo.metrics import prometheus
print(prometheus.metrics_view(RequestFactory().get("/metrics")).content.decode())
"""
    )
    found = dict(line.rsplit(" ", 1) for line in printed.splitlines() if "{" in line)
    tickets = '{collection="tickets",database="default",node_tag="A"}'
    assert found[f"hilo_reserved_ranges_total{tickets}"] == "2.0"
    assert found[f"hilo_reserved_numbers_total{tickets}"] == "1032.0"
    assert found[f"hilo_highest_number{tickets}"] == "1032.0"
