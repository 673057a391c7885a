"""Metrics for Prometheus; needs ``django-hilo[prometheus]``.

Labels are ``database``, ``collection`` and ``node_tag``, and ``level`` of log records.
"""

import logging
import os
from typing import Any

from django.http import HttpRequest, HttpResponse
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from django_hilo.signals import range_reserved

__all__ = ["connect", "metrics_view"]

_log = logging.getLogger("django_hilo")
_LABELS = ("database", "collection", "node_tag")
_RANGES = Counter("hilo_reserved_ranges", "Ranges reserved", _LABELS)
_NUMBERS = Counter("hilo_reserved_numbers", "Numbers in them", _LABELS)
# The highest of all processes of a server.
_HIGHEST = Gauge(
    "hilo_highest_number", "End of a range", _LABELS, multiprocess_mode="max"
)
_LOGGED = Counter("hilo_log_records", "Log records of django_hilo", ("level",))
for _level in ("WARNING", "ERROR"):
    _LOGGED.labels(_level)  # starts at 0, or increase() would miss the first one


def connect() -> None:
    """Start to count ranges, numbers and log records; a second call does nothing."""
    range_reserved.connect(_count, dispatch_uid=__name__)
    # With a handler of its own, the logger would no longer write to stderr by default.
    _log.addFilter(_count_record)


def metrics_view(request: HttpRequest) -> HttpResponse:
    """Return the metrics of this process, for Prometheus. The page is public.

    If ``PROMETHEUS_MULTIPROC_DIR`` is set, return those of all processes that share it.
    """
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # has none
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _count(using: str, reservation: Any, **kwargs: Any) -> None:
    labels = using, reservation.collection, reservation.node_tag
    _RANGES.labels(*labels).inc()
    _NUMBERS.labels(*labels).inc(reservation.range.size)
    _HIGHEST.labels(*labels).set(reservation.range.high)


def _count_record(record: logging.LogRecord) -> bool:
    if record.levelno >= logging.WARNING:
        _LOGGED.labels(record.levelname).inc()
    return True
