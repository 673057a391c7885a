"""Storages: the places where other systems keep their counters."""

from django_hilo.sources.storages.row import Row
from django_hilo.sources.storages.sequence import Sequence

__all__ = ["Row", "Sequence"]
