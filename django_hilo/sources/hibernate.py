"""Counters of Hibernate ORM, 3 to 7; checked against Hibernate 3.6.10.

``max_number`` is the highest id that the partner's type takes: Java's ``int`` ends at
2147483647 and wraps without an error.
"""

from __future__ import annotations

import re

from django.utils.deconstruct import deconstructible

from django_hilo.exceptions import UnsafeSource
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import rules
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Row, Sequence
from django_hilo.sources.storages.base import Storage

_NEWEST = "7.2"


def block_of(max_lo: int) -> int:
    """Return how many ids a hi gives: ``max_lo + 1``, or 1 for a max_lo under 1."""
    if isinstance(max_lo, bool) or not isinstance(max_lo, int):
        raise ValueError(f"max_lo must be a whole number, not {max_lo!r}.")
    return max(max_lo, 0) + 1


@deconstructible(path="django_hilo.sources.hibernate.HiLo")
class HiLo(ForeignCounter):
    """``hilo`` (TableHiLoGenerator): one row, all entities; rule L1."""

    def __init__(
        self,
        max_lo: int,
        table: str = "hibernate_unique_key",
        column: str = "next_hi",
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        rule = rules.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Row(table, column), rule)


@deconstructible(path="django_hilo.sources.hibernate.SequenceHiLo")
class SequenceHiLo(ForeignCounter):
    """``seqhilo`` (SequenceHiLoGenerator): a sequence with INCREMENT BY 1; rule L1."""

    def __init__(
        self,
        max_lo: int,
        sequence: str = "hibernate_sequence",
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        rule = rules.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Sequence(sequence), rule)


@deconstructible(path="django_hilo.sources.hibernate.MultipleHiLo")
class MultipleHiLo(ForeignCounter):
    """MultipleHiLoPerTableGenerator: a row an entity; rule L1.

    ``name`` is the entity's table, as Hibernate writes it.
    """

    def __init__(
        self,
        max_lo: int,
        name: str,
        table: str = "hibernate_sequences",
        *,
        key_column: str = "sequence_name",
        column: str = "sequence_next_hi_value",
        max_number: int = MAX_NUMBER,
    ) -> None:
        rule = rules.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Row(table, column, key={key_column: name}, start=0), rule)


@deconstructible(path="django_hilo.sources.hibernate.EnhancedHiLo")
class EnhancedHiLo(ForeignCounter):
    """The optimizer ``hilo`` of the enhanced generators, of 5.2.10 and later; L2, L3.

    Raises `UnsafeSource` for a ``version`` before that (HHH-3628). The other arguments
    are those of `Pooled`.
    """

    def __init__(
        self,
        increment: int,
        *,
        sequence: str | None = None,
        table: str | None = None,
        segment: str | None = None,
        column: str = "next_val",
        segment_column: str = "sequence_name",
        stored_last_used: bool | None = None,
        version: str = _NEWEST,
        max_number: int = MAX_NUMBER,
    ) -> None:
        if _number(version) < (5, 2, 10):
            raise UnsafeSource(
                f"The optimizer 'hilo' of Hibernate {version} gives ids twice as soon "
                f"as two processes run (HHH-3628): 810 of 1,500 when measured. Use "
                f"Hibernate 5.2.10 or later, or its optimizer 'pooled-lo'."
            )
        last_used = _last_used(stored_last_used, segment, version)
        rule = rules.HiLo(increment, 0 if last_used else -1, 1, max_number)
        start = 0 if last_used else 1
        storage = _storage(sequence, table, segment, column, segment_column, start)
        super().__init__(storage, rule)


@deconstructible(path="django_hilo.sources.hibernate.Pooled")
class Pooled(ForeignCounter):
    """The optimizer ``pooled``, the default of enhanced generators; L4, L5, L8.

    Either a ``sequence`` with INCREMENT BY ``increment``, or a ``table``: with the
    ``segment`` of a row (JPA's @TableGenerator), or with one row only. A segment's
    number is the last id used since 5.3 (``stored_last_used``; None: by ``version``).
    ``initial_value`` is the generator's; that of @TableGenerator(initialValue=n) is
    n + 1. ``version`` is the partner's: before 4.3.11 the blocks lie one lower.
    """

    def __init__(
        self,
        increment: int,
        *,
        sequence: str | None = None,
        table: str | None = None,
        segment: str | None = None,
        column: str = "next_val",
        segment_column: str = "sequence_name",
        stored_last_used: bool | None = None,
        initial_value: int = 1,
        version: str = _NEWEST,
        max_number: int = MAX_NUMBER,
    ) -> None:
        last_used = _last_used(stored_last_used, segment, version)
        rule: rules.Rule
        if _number(version) < (4, 3, 11):
            rule = rules.PooledBelow(increment, max_number)
        else:
            rule = rules.Pooled(increment, initial_value, last_used, max_number)
        start = initial_value - 1 if last_used else initial_value
        storage = _storage(sequence, table, segment, column, segment_column, start)
        super().__init__(storage, rule)


@deconstructible(path="django_hilo.sources.hibernate.PooledLo")
class PooledLo(ForeignCounter):
    """The optimizers ``pooled-lo`` and ``pooled-lotl``; L6, L7.

    On a table, ranges of Django's may have any size beside those of the partner. The
    arguments are those of `Pooled`.
    """

    def __init__(
        self,
        increment: int,
        *,
        sequence: str | None = None,
        table: str | None = None,
        segment: str | None = None,
        column: str = "next_val",
        segment_column: str = "sequence_name",
        stored_last_used: bool | None = None,
        initial_value: int = 1,
        version: str = _NEWEST,
        max_number: int = MAX_NUMBER,
    ) -> None:
        last_used = _last_used(stored_last_used, segment, version)
        kind = rules.LastUsed if last_used else rules.PooledLo
        rule = kind(increment, max_number)
        start = initial_value - 1 if last_used else initial_value
        storage = _storage(sequence, table, segment, column, segment_column, start)
        if isinstance(storage, Row):
            rule = kind(1, max_number)
        super().__init__(storage, rule)


def _storage(
    sequence: str | None,
    table: str | None,
    segment: str | None,
    column: str,
    segment_column: str,
    start: int,
) -> Storage:
    if (sequence is None) == (table is None):
        raise ValueError("Name either sequence= or table=.")
    if sequence is not None:
        if segment is not None:
            raise ValueError(f"The sequence {sequence!r} has no segment {segment!r}.")
        return Sequence(sequence)
    assert table is not None
    if segment is None:
        return Row(table, column)
    return Row(table, column, key={segment_column: segment}, start=start)


def _last_used(given: bool | None, segment: str | None, version: str) -> bool:
    if segment is None:
        if given:
            raise ValueError("stored_last_used is for a table with a segment.")
        return False
    return _number(version) >= (5, 3) if given is None else given


def _number(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version) if isinstance(version, str) else None
    if found is None:
        raise ValueError(f"version must be as '5.2.10', not {version!r}.")
    return tuple(int(part) for part in found[0].split(".")[:3])
