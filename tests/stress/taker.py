"""What one thread does: take ids from the generator, and create rows."""

from __future__ import annotations

import random

from django.db import (
    IntegrityError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from django_hilo.exceptions import ConcurrencyError
from django_hilo.generator import next_id, next_ids
from tests.records.models import Order
from tests.stress.board import Board
from tests.stress.journal import Journal

# Ids outside transactions for each row: 200,000 and 20,000 are to be done together.
IDS_PER_ROW = 10
ROLLS_BACK = 1 / 3
NESTS = 1 / 4


class Undo(Exception):
    """Rolls a block back."""


class Taker:
    """One thread's hand in the counter."""

    def __init__(
        self, board: Board, seat: int, thread: int, seed: str, journal: Journal
    ) -> None:
        self._board = board
        self._seat = seat
        self._thread = thread
        self._random = random.Random(f"{seed}/{seat}/{thread}")
        self._journal = journal
        self._names = 0

    def do_some(self) -> None:
        """Do one transaction and take ids for it, as far as they are wanted."""
        created = 3
        if self._board.wants_rows():
            created = self._create_rows()
        if self._board.wants_ids():
            self._take_ids(created * IDS_PER_ROW)
        if self._random.random() < 0.05:
            close_old_connections()  # as at the end of a request

    def _take_ids(self, wanted: int) -> None:
        while wanted > 0:
            try:
                ids = self._some_ids(wanted)
            except (OperationalError, ConcurrencyError) as error:
                self._expect(error)
                return
            self._journal.note("given", *ids)
            self._board.count(self._seat, self._thread, ids=len(ids))
            wanted -= len(ids)

    def _some_ids(self, wanted: int) -> list[str]:
        way = self._random.randrange(8)
        if way == 0:
            return next_ids(Order, self._random.randint(1, min(20, wanted)))
        if way == 1:
            return Order.objects.next_ids(self._random.randint(1, min(5, wanted)))
        return [next_id(Order) if way < 5 else next_id("orders")]

    def _create_rows(self) -> int:
        """Create rows in one transaction, and return how many ``create()`` made."""
        before = self._names
        try:
            with transaction.atomic():
                standing = self._block(depth=0)
                if self._random.random() < ROLLS_BACK:
                    raise Undo
        except Undo:
            self._journal.note("rolledback")
        except (OperationalError, ConcurrencyError) as error:
            self._journal.note("unknown")
            self._expect(error)
            return 0  # done again as a whole, by the next call
        except IntegrityError as error:
            # What must never be. The run goes on, to show how often.
            self._journal.note("unknown")
            self._journal.note("repeated", error)
            return 0
        else:
            self._journal.note("committed", *standing)
        created = self._names - before
        self._board.count(self._seat, self._thread, rows=created)
        return created

    def _block(self, depth: int) -> list[str]:
        """Fill a block, and return the ids that stand if all around it commits."""
        standing = []
        for _ in range(self._random.randint(1, 3)):
            standing.append(self._create())
            if self._random.random() < 0.1:
                drawn = next_id(Order)
                self._journal.note("drawn", drawn)
                standing.append(drawn)
            if depth < 2 and self._random.random() < NESTS:
                standing += self._nested(depth + 1)
        return standing

    def _nested(self, depth: int) -> list[str]:
        try:
            with transaction.atomic():
                standing = self._block(depth)
                if self._random.random() < ROLLS_BACK:
                    raise Undo
        except Undo:
            return []
        return standing

    def _create(self) -> str:
        self._names += 1
        name = f"{self._seat}.{self._thread}.{self._names}"
        order = Order.objects.create(name=name)
        self._journal.note("born", order.pk, name)
        return order.pk

    def _expect(self, error: Exception) -> None:
        """Note an error that contention on SQLite explains; raise any other."""
        locked = isinstance(error, ConcurrencyError) or "locked" in str(error)
        if connection.vendor != "sqlite" or not locked:
            raise error
        self._journal.note("error", type(error).__name__, error)
