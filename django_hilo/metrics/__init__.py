"""Metrics of reservations, for Prometheus and for OpenTelemetry.

Each module has a `connect()` for an app's ``ready()``, and needs its extra:
``django-hilo[prometheus]`` or ``django-hilo[opentelemetry]``.
"""
