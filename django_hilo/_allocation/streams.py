"""Endless iterators of ids."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import chain
from typing import Any, NamedTuple

from django.db import connections

from django_hilo._allocation.allocate import cut_in_memory, draw
from django_hilo._allocation.block import Block, shared
from django_hilo._allocation.fast_path import is_steady
from django_hilo._allocation.formats import Style
from django_hilo._allocation.ids import ids_of, style_of
from django_hilo._allocation.pool import CounterKey
from django_hilo._allocation.target import AnyTarget, Target, resolve
from django_hilo._database.connection import key_by
from django_hilo.conf import given


def stream(target: AnyTarget, using: str | None) -> Iterator[Any]:
    """Return the ids of a target without end; after an error the next call goes on."""
    return shared(chain.from_iterable(_Parts(target, using)))


class _Place(NamedTuple):
    """Where the last block came from, and what must be as it was for the next one."""

    target: Target
    key: CounterKey
    style: Style
    hilo: dict[str, Any]

    @classmethod
    def of(cls, target: Target) -> _Place | None:
        """Return a target's place; None where its next ids may come from another."""
        if not is_steady(connections[target.using]):
            return None
        # A project may change a dictionary in there.
        hilo = {name: copy(value) for name, value in given().items()}
        return cls(target, target.key, style_of(target), hilo)

    def holds(self) -> bool:
        """Whether the next ids come from here, and look alike."""
        if given() != self.hilo:
            return False
        using, database = self.target.using, self.key.database
        connection = connections[using]
        return is_steady(connection) and key_by(connection, using) == database


class _Parts:
    """The ids of one block after another, or one by one where blocks would not do."""

    def __init__(self, target: AnyTarget, using: str | None) -> None:
        self._target = target
        self._using = using
        self._place: _Place | None = None
        self._block: Block | None = None

    def __iter__(self) -> _Parts:
        return self

    def __next__(self) -> Iterator[Any]:
        try:
            return self._next()
        except BaseException as error:  # noqa: BLE001 - raised where the id is asked for
            return _failing(error)

    def _next(self) -> Iterator[Any]:
        place, spent = self._place, self._block
        goes_on = spent is not None and spent.goes_on
        if place is None or not (goes_on or place.holds()):
            target = resolve(self._target, self._using)
            place = self._place = _Place.of(target)
            if place is None:
                return iter(ids_of(target, draw(target, 1)))
        block = self._block = cut_in_memory(place.target, place.key, place.style, spent)
        if block is not None:
            return block.ids
        return iter(ids_of(place.target, draw(place.target, 1)))


def _failing(error: BaseException) -> Iterator[Any]:
    # An error of its own would end the chain.
    raise error
    yield
