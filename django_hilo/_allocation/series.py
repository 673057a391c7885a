"""A series: the numbers of a field for one tenant, year or whatever ``per`` names."""

from __future__ import annotations

from typing import Any, NamedTuple

from django_hilo.identifiers import IdFormat


class Series(NamedTuple):
    """One series of a field, which has a counter of its own."""

    field: Any
    # Of its counter: the collection and the values of the paths.
    name: str
    # Of its ids.
    format: IdFormat
