"""How work runs: short transactions that give up and try again, and long statements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import OperationalError, transaction

from django_hilo.exceptions import HiLoError
from django_hilo.moving.online.phases import Batches, Work

_PAUSE = 0.5


class Patience(NamedTuple):
    """How long work waits for a lock (seconds), and how often it is tried."""

    lock_timeout: float
    tries: int
    # Blocks of 8 KiB in a batch, and seconds between two.
    blocks: int
    pause: float


def run(
    work: Work | Batches,
    connection: Any,
    patience: Patience,
    tell: Callable[[str], object],
) -> None:
    """Run one piece of work; raises `HiLoError` where its locks are never free."""
    if isinstance(work, Batches):
        _run_batches(work, connection, patience, tell)
    elif work.is_short:
        _again(lambda: _run_short(work, connection, patience), work, patience, tell)
    else:
        with connection.cursor() as cursor:
            for statement in work.statements:
                cursor.execute(statement)


def _run_short(work: Work, connection: Any, patience: Patience) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        _limit(cursor, patience)
        if work.act is not None:
            # It locks many tables: each lock held, while it waits for the next, counts.
            cursor.execute(f"SET LOCAL statement_timeout = {_milliseconds(patience)}")
        for number, statement in enumerate(work.statements):
            cursor.execute(statement)
            if number == 0 and work.act is not None:
                cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
                work.act()


def _run_batches(
    work: Batches, connection: Any, patience: Patience, tell: Callable[[str], object]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_relation_size(to_regclass(%s)) "
            "/ current_setting('block_size')::int",
            [work.table],
        )
        blocks = cursor.fetchone()[0] + 1
    for low in range(0, blocks, patience.blocks):
        statement = work.statement.replace("{low}", str(low))
        statement = statement.replace("{high}", str(low + patience.blocks))

        def update(statement: str = statement) -> None:
            atomic = transaction.atomic(using=connection.alias)
            with atomic, connection.cursor() as cursor:
                _limit(cursor, patience)
                cursor.execute(statement)

        _again(update, work, patience, tell)
        time.sleep(patience.pause)


def _limit(cursor: Any, patience: Patience) -> None:
    cursor.execute(f"SET LOCAL lock_timeout = {_milliseconds(patience)}")


def _milliseconds(patience: Patience) -> int:
    return max(round(patience.lock_timeout * 1000), 1)  # 0 would mean: for ever


def _again(
    operate: Callable[[], object],
    work: Work | Batches,
    patience: Patience,
    tell: Callable[[str], object],
) -> None:
    for number in range(1, patience.tries + 1):
        try:
            operate()
        except OperationalError as error:
            # A lock that is not free, or a deadlock; others queue behind us no longer.
            reason = str(error).splitlines()[0]
            tell(f"Try {number} of {patience.tries}: {reason}")
            if number == patience.tries:
                raise HiLoError(
                    f"{work.what}: the locks were not free in {number} tries. Look for "
                    f"long transactions in pg_stat_activity, and run it again."
                ) from error
            time.sleep(_PAUSE)
        else:
            return
