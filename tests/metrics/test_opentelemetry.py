"""django_hilo.metrics.opentelemetry, read by OpenTelemetry's own SDK."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_hilo import __version__
from django_hilo.generator import next_id, next_numbers, return_ranges
from django_hilo.metrics import opentelemetry
from django_hilo.signals import range_reserved, range_returned
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True)

ATTRIBUTES = {
    "hilo.database": "default",
    "hilo.collection": "orders",
    "hilo.node_tag": "A",
}


@pytest.fixture
def reader() -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    opentelemetry.connect(MeterProvider([reader], shutdown_on_exit=False))
    yield reader
    for signal in (range_reserved, range_returned):
        signal.disconnect(dispatch_uid=opentelemetry.__name__)


def points_in(reader: InMemoryMetricReader) -> dict[tuple[str, str], Any]:
    (resource,) = reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("django_hilo", __version__)
    return {
        (metric.name, point.attributes["hilo.collection"]): point
        for metric in scope.metrics
        for point in metric.data.data_points
    }


def test_ranges_and_numbers(reader):
    next_id(Order)
    next_id(Order)
    return_ranges()
    next_numbers("tickets", 100)
    found = points_in(reader)
    assert {key: point.value for key, point in found.items()} == {
        ("hilo.ranges.reserved", "orders"): 1,
        ("hilo.numbers.reserved", "orders"): 32,
        ("hilo.ranges.reserved", "tickets"): 1,
        ("hilo.numbers.reserved", "tickets"): 100,
        ("hilo.ranges.returned", "orders"): 1,
    }
    for name in ("reserved", "returned"):
        assert dict(found[f"hilo.ranges.{name}", "orders"].attributes) == ATTRIBUTES


def test_connected_twice_counts_once(reader):
    opentelemetry.connect()
    next_id(Order)
    assert points_in(reader)["hilo.ranges.reserved", "orders"].value == 1


def test_the_span_that_waited_has_an_event(reader):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    for _ in range(2):
        with tracer.start_as_current_span("request"):
            next_id(Order)
    waited, other = exporter.get_finished_spans()
    (event,) = waited.events
    assert event.name == "hilo.range_reserved"
    assert dict(event.attributes) == {**ATTRIBUTES, "hilo.low": 1, "hilo.high": 32}
    assert not other.events
