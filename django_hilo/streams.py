"""Endless iterators of ids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from django_hilo.blocks import Block, shared
from django_hilo.drawing import draw
from django_hilo.ids import block_in_memory, ids_of
from django_hilo.shortcuts import is_steady
from django_hilo.targets import AnyTarget, resolve


def stream(target: AnyTarget, using: str | None) -> Iterator[Any]:
    """Return the ids of a target without end; after an error the next call goes on."""
    return shared(chain.from_iterable(_Parts(target, using)))


class _Parts:
    """The ids of one block after another, or one by one where blocks would not do."""

    def __init__(self, target: AnyTarget, using: str | None) -> None:
        self._target = target
        self._using = using
        self._block: Block | None = None

    def __iter__(self) -> _Parts:
        return self

    def __next__(self) -> Iterator[Any]:
        try:
            return self._next()
        except BaseException as error:  # noqa: BLE001 - raised where the id is asked for
            return _failing(error)

    def _next(self) -> Iterator[Any]:
        target = resolve(self._target, self._using)
        if is_steady(target.using):
            self._block = block_in_memory(target, self._block)
            if self._block is not None:
                return self._block.ids
        return iter(ids_of(target, draw(target, 1)))


def _failing(error: BaseException) -> Iterator[Any]:
    # An error of its own would end the chain.
    raise error
    yield
