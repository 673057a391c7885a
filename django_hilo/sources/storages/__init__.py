"""Where other systems keep their counters: one class for each kind of place."""

from django_hilo.sources.storages.row import Row
from django_hilo.sources.storages.sequence import Sequence

__all__ = ["Row", "Sequence"]
