"""Counters of the package django-sequences."""

from django.utils.deconstruct import deconstructible

from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Row


@deconstructible(path="django_hilo.sources.django_sequences.Sequence")
class Sequence(ForeignCounter):
    """``get_next_value(name)``; formula F5.

    Its callers lock the row until their transaction ends, and Django waits for them.
    Sharing the counter gives it gaps, although that package exists to avoid gaps.
    """

    def __init__(self, name: str, *, max_number: int = MAX_NUMBER) -> None:
        row = Row("sequences_sequence", "last", key={"name": name}, start=0)
        super().__init__(row, formulas.LastUsed(1, max_number))
