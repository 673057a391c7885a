"""Takes a protection away, to prove that its absence is seen."""

import os
from typing import Any

VARIABLE = "HILO_TORTURE_SABOTAGE"
# What is broken, by kind.
KINDS = {
    "fork": "a child keeps the ranges of its parent",
    "bond": "SQLite: a range survives the rollback of its transaction",
    "lock": "servers: nobody locks the row",
    "ticket": "a return needs no ticket",
    "replay": "a return needs not be of the newest range of its issuer",
    "own": "servers: ranges are reserved in the caller's transaction",
    "floor": "an id that somebody chose raises no floor",
    "session": "servers: a session is left open",
}


def break_product(kind: str) -> None:
    """Take one protection away in this process."""
    from django.db.models import QuerySet

    from django_hilo._allocation import explicit_ids, pool
    from django_hilo._database import connection, rollback
    from django_hilo.counters import reservation

    def keep_ranges() -> None:
        pool._pool.pid = os.getpid()

    if kind == "ticket":
        reservation.compare_digest = lambda one, two: True  # type: ignore[assignment]
    elif kind == "replay":
        _trust_returns()
    elif kind == "own":
        connection.run = lambda operate, callers, *_: operate(callers.alias)
    elif kind == "floor":
        explicit_ids.record_explicit = lambda target, numbers, using: None
        explicit_ids._raise_inside = lambda target, counter, number: None
    elif kind == "fork":
        pool.after_fork_in_child = keep_ranges
    elif kind == "lock":
        QuerySet.select_for_update = lambda self, **kwargs: self  # type: ignore
    elif kind == "bond":
        rollback.RollbackDetector.is_alive = lambda self: True  # type: ignore[method-assign]


def _trust_returns() -> None:
    """Take returns as RavenDB does: Max is as high as the caller says, no more."""
    from django_hilo.counters import reservation

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
                raise reservation.RangeNotReturned("Not the newest.")
            return {"max": max(last, 0)}

        collection, tag = reservation._checked(collection, node_tag, using)
        reservation.change_counter(collection, tag, using, lower)
        return last

    reservation.return_range = give_back


def leave_session() -> None:
    """Leave a session open, if that was asked for."""
    if os.environ.get(VARIABLE) == "session":
        from django.db import connection

        connection.ensure_connection()
