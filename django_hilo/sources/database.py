"""Sequences of the database that no other system uses."""

from __future__ import annotations

from django.utils.deconstruct import deconstructible

from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import rules, storages
from django_hilo.sources.foreign import ForeignCounter


@deconstructible(path="django_hilo.sources.database.Sequence")
class Sequence(ForeignCounter):
    """A sequence by its name; each value stands for ``increment`` ids, itself first.

    With INCREMENT BY 1 other writers may use ``nextval`` as they like.
    """

    def __init__(
        self, name: str, increment: int = 1, *, max_number: int = MAX_NUMBER
    ) -> None:
        rule = rules.PooledLo(increment, max_number)
        super().__init__(storages.Sequence(name), rule)
