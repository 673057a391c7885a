"""Metrics and span events for OpenTelemetry; needs ``django-hilo[opentelemetry]``.

Attributes are ``hilo.database``, ``hilo.collection`` and ``hilo.node_tag``.
"""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics, trace

from django_hilo import __version__
from django_hilo.signals import range_reserved, range_returned

__all__ = ["connect"]


def connect(meter_provider: metrics.MeterProvider | None = None) -> None:
    """Start to count ranges and numbers; a second call does nothing.

    A span that waited for a range also gets an event. ``meter_provider`` is the global
    one by default.
    """
    meter = metrics.get_meter("django_hilo", __version__, meter_provider)
    ranges = meter.create_counter("hilo.ranges.reserved", unit="{range}")
    numbers = meter.create_counter("hilo.numbers.reserved", unit="{number}")
    returns = meter.create_counter("hilo.ranges.returned", unit="{range}")

    def count_reserved(using: str, reservation: Any, **kwargs: Any) -> None:
        of = _attributes(using, reservation.collection, reservation.node_tag)
        low, high = reservation.range.low, reservation.range.high
        ranges.add(1, of)
        numbers.add(reservation.range.size, of)
        event = {**of, "hilo.low": low, "hilo.high": high}
        trace.get_current_span().add_event("hilo.range_reserved", event)

    def count_returned(
        using: str, collection: str, node_tag: str, **kwargs: Any
    ) -> None:
        returns.add(1, _attributes(using, collection, node_tag))

    range_reserved.connect(count_reserved, weak=False, dispatch_uid=__name__)
    range_returned.connect(count_returned, weak=False, dispatch_uid=__name__)


def _attributes(using: str, collection: str, node_tag: str) -> dict[str, str]:
    return {
        "hilo.database": using,
        "hilo.collection": collection,
        "hilo.node_tag": node_tag,
    }
