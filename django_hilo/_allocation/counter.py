"""A counter as a caller means it: where it is, its numbers, its memory, its ids."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from django.db import connections

from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange, Skipped, Slice
from django_hilo._allocation.memory import Key, Memory
from django_hilo._allocation.registry import CounterField
from django_hilo._database.identity import database_key
from django_hilo.conf import settings
from django_hilo.counters.own import OwnSource
from django_hilo.counters.ranges import Capacity, Reservation, Wanted
from django_hilo.counters.source import Source
from django_hilo.identifiers import IdFormat, check_separator

logger = logging.getLogger("django_hilo")


class Reserved(NamedTuple):
    """Ranges that were just reserved."""

    reservations: list[Reservation]
    ranges: list[CachedRange]
    skipped: list[Skipped]
    # What the next capacity goes by.
    capacity: int


class Counter:
    """A counter, with the look of its ids; ``using`` is the alias that has it.

    ``collection`` is "" for a source alone, whose ids are numbers. ``width`` is the
    number of digits, with leading zeros; 0: as many as a number has. ``format`` is
    that of a series' ids; None: ids are made of the collection and what the settings
    and the range say.
    """

    def __init__(
        self,
        collection: str,
        using: str,
        source: Source,
        field: CounterField | None = None,
        width: int = 0,
        format: IdFormat | None = None,
    ) -> None:
        self.collection, self.using, self.source = collection, using, source
        self.field, self.width, self._of_series = field, width, format
        # The attributes of the connection of the thread that looked for it.
        self.connection_vars = vars(connections[using])
        # Of its memory in the pool of this process.
        self.key: Key = (database_key(using), *source.key)
        # Whether its ids are the numbers themselves.
        self.is_integer = field.is_integer if field else not collection
        # The reservation of the last id, and the format of its ids: read at once.
        # Shared with what it is `changed` to, but for the width.
        self._format: list[Any] = [None, None]

    # Whether a TestCase may have its numbers.
    may_be_tested = False
    # The highest number that tests beside this thread have.
    over = 0

    @cached_property
    def memory(self) -> Memory:
        """What this process holds of it."""
        return memory.current().memory(self.key)

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.collection or self.source.name

    @property
    def node_tag(self) -> str:
        """The tag of its ids, empty for none."""
        return self.source.node_tag

    @property
    def capacities(self) -> tuple[int, int]:
        """The minimum and the maximum capacity of a range."""
        least = getattr(self.field, "capacity", None) or settings.CAPACITY
        most = getattr(self.field, "max_capacity", None) or settings.MAX_CAPACITY
        return least, max(least, most)

    def changed(self, **parts: Any) -> Counter:
        """Return the same counter, but for some of its attributes."""
        other = object.__new__(Counter)
        vars(other).update(vars(self), **parts)
        if "width" in parts:
            other._format = [None, None]
        return other

    def id_of(self, number: int, reservation: Reservation) -> Any:
        """Return the id of a number of a range."""
        of, format = self._format
        if of is not reservation:
            format = self._format_of(reservation)
        return number if format is None else format.text(number)

    def _format_of(self, reservation: Reservation) -> IdFormat | None:
        """Return the format of the ids of a range, None if they are its numbers."""
        format = None
        if not self.is_integer:
            format = self._format_with(reservation.server_prefix, reservation.node_tag)
        self._format[:] = reservation, format
        return format

    def next_format(self, *, reads_prefix: bool = True) -> IdFormat:
        """Return the format of the next ids, without a server prefix if not read."""
        prefix = None
        is_own = isinstance(self.source, OwnSource) and self._of_series is None
        if reads_prefix and is_own:
            # Migrations import this, and need not have the app.
            from django_hilo.models import ServerPrefix

            rows = ServerPrefix.objects.using(self.using).filter(pk=self.node_tag)
            prefix = rows.values_list("prefix", flat=True).first()
        return self._format_with(prefix or "", self.node_tag)

    def _format_with(self, prefix: str, node_tag: str) -> IdFormat:
        if self._of_series is not None:
            return self._of_series
        separator = check_separator(settings.SEPARATOR)
        tag = node_tag if settings.SHOW_NODE_TAG else ""
        format = IdFormat.of(self.collection, separator, prefix, tag)
        return format._replace(width=self.width)

    def ids_of(self, slices: Iterable[Slice]) -> list[Any]:
        """Return the ids of numbers that were taken."""
        ids: list[Any] = []
        for low, high, reservation, _ in slices:
            format = self._format_of(reservation)
            ids += format.texts(low, high) if format else range(low, high + 1)
        return ids

    def fetch(
        self, capacity: Capacity, count: int, highest_row: int | None = None
    ) -> Reserved:
        """Reserve ranges, over all numbers that are known.

        ``highest_row`` is the highest number of rows, 0 if it was not looked for; None:
        the ranges belong to the caller's transaction.
        """
        held, source, using = self.memory, self.source, self.using
        is_bound = highest_row is None
        if highest_row is None:
            highest_row = source.minimum_of_rows(using)
        stored = held.stored
        wanted = Wanted(
            size=max(capacity.size, count),
            at_least=max(count, 1),
            minimum=max(held.seen, self.over, highest_row),
            collection=self.collection,
            capacity=capacity,
        )
        reserved = source.reserve(using, wanted)
        held.source = source
        met, fell_from = reserved[0].met, 0
        # Another thread may have raised Max or returned a range meanwhile.
        if met is not None and met < min(stored, held.stored):
            fell_from = stored
            if not is_bound:  # a rollback would forget it
                held.stored = met
            self._warn_of_fall(met, stored)
        ranges, skipped = [], []
        for each in reserved:
            # Read again: a transaction that ended while this one waited for the row may
            # have burnt numbers of the range.
            ranges.append(CachedRange(each, held.burnt))
            if met is not None:
                # If the counter fell back, others may have the numbers from there.
                skipped.append(Skipped(max(met, fell_from), ranges[-1].next))
        return Reserved(reserved, ranges, skipped, capacity.after(reserved[0].waited))

    def _warn_of_fall(self, met: int, stored: int) -> None:
        logger.warning(
            "%s on %r fell back to %d from at least %d, because of a restore, a "
            "failover, SQL, or another site with its node tag. This process will not "
            "reissue numbers that it knows of, but other processes may. Run: python "
            "manage.py hilo_raise_max --database=%s",
            *(self.source.name, self.using, met, stored, self.using),
        )
