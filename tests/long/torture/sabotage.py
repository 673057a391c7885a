"""Takes a protection away, to prove that its absence is seen."""

import os
import threading
from collections import deque
from copy import copy
from typing import Any

VARIABLE = "HILO_TORTURE_SABOTAGE"
# What is broken, by kind.
KINDS = {
    "fork": "a child keeps the ranges of its parent",
    "bond": "SQLite: a range survives the rollback of its transaction",
    "burnt": "SQLite: a number that was rolled back is given again",
    "pair": "SQLite: after the commit a range is in the pool and in the transaction",
    "sure": "SQLite: a rolled-back id counts as sure, whoever has its number now",
    "lock": "servers: nobody locks the row",
    "ticket": "a return needs no ticket",
    "replay": "a return needs not be of the newest range of its issuer",
    "own": "servers: ranges are reserved in the caller's transaction",
    "floor": "an id that somebody chose raises no floor",
    "series": "two values of a series have one counter",
    "session": "servers: a session is left open",
}


def break_product(kind: str) -> None:
    """Take one protection away in this process."""
    from django.db.models import QuerySet

    from django_hilo._allocation import explicit_ids, memory
    from django_hilo._database import retry
    from django_hilo.counters import returning
    from django_hilo.fields import _assigned_ids, _series

    def keep_ranges() -> None:
        memory._pool.pid = os.getpid()

    if kind == "ticket":
        returning.compare_digest = lambda one, two: True  # type: ignore[assignment]
    elif kind == "replay":
        _trust_returns()
    elif kind == "own":
        retry.on_right_connection = lambda operate, callers, *_: operate(callers.alias)
    elif kind == "floor":
        explicit_ids.record = lambda counter, numbers, using: None
        explicit_ids._raise_inside = lambda counter, number: None
    elif kind == "fork":
        memory.after_fork_in_child = keep_ranges
    elif kind == "lock":
        QuerySet.select_for_update = lambda self, **kwargs: self  # type: ignore
    elif kind == "bond":
        _keep_rolled_back()
    elif kind == "burnt":
        memory.Memory.burn = lambda self, number: None  # type: ignore[method-assign]
    elif kind == "pair":
        _keep_committed()
    elif kind == "series":
        name_of = _series.name_of_series
        _series.name_of_series = lambda collection, values: name_of(
            collection, [str(value).partition("-")[0] for value in values]
        )
    elif kind == "sure":
        _assigned_ids.sure_numbers = lambda counter, numbers: dict.fromkeys(numbers)


def _keep_rolled_back() -> None:
    """Keep the marks of work that was rolled back, and the ranges with them."""
    from django_hilo._database.transaction import ConnectionState, Outcome

    settle: Any = ConnectionState._settle

    def settle_others(self: Any, mark: Any, outcome: Outcome) -> None:
        if outcome is not Outcome.ROLLED_BACK:
            settle(self, mark, outcome)

    ConnectionState._settle = settle_others  # type: ignore[method-assign]


def _keep_committed() -> None:
    """Let later transactions of a thread take of a copy of each committed range too."""
    from django_hilo._allocation import allocate, in_transaction
    from django_hilo._allocation.cached_range import take_from

    commit: Any = in_transaction.Bound.commit
    take: Any = in_transaction.take_bound
    copies = threading.local()

    def commit_and_keep(self: Any) -> None:
        kept = list(map(copy, self.ranges))
        commit(self)
        vars(copies).setdefault(self.key, deque()).extend(kept)

    def take_of_kept_too(held: Any, count: int) -> Any:
        kept = vars(copies).get(held.key, deque())
        return take(held, count) or take_from(kept, count)

    in_transaction.Bound.commit = commit_and_keep  # type: ignore[method-assign]
    in_transaction.take_bound = allocate.take_bound = take_of_kept_too


def _trust_returns() -> None:
    """Take returns as RavenDB does: Max is as high as the caller says, no more."""
    from django_hilo.counters import reservation, returning

    def give_back(
        collection: str,
        high: int,
        last: int,
        *marks: str,
        node_tag: str | None = None,
        using: str = "default",
        **more: Any,
    ) -> int:
        def lower(document: Any, prefix: str) -> dict[str, Any]:
            if document.max != high or last > high:
                raise returning.RangeNotReturned("Not the newest.")
            return {"max": max(last, 0)}

        collection, tag = reservation.checked(collection, node_tag, using)
        reservation.change_counter(collection, tag, using, lower)
        return last

    returning.return_range = give_back


def leave_session() -> None:
    """Leave a session open, if that was asked for."""
    if os.environ.get(VARIABLE) == "session":
        from django.db import connection

        connection.ensure_connection()
