"""Ranges that a program reserves for itself, and returns as it should not."""

from collections.abc import Callable
from typing import Any

from django_hilo.counters import reservation, returning
from django_hilo.exceptions import RangeNotReturned
from tests.long.torture.counters import ORDERS
from tests.long.torture.notes import note

FORGED = "0123456789abcdef" * 2
# What is returned, and whether it was taken: (high, last, ticket).
Return = Callable[[int, int, str], bool]


def lend(size: int, used: int, then: str) -> None:
    """Reserve a range, use some of it, and do something about the rest."""
    lent = reservation.reserve("orders", size)
    low, high = lent.range.low, lent.range.high
    last = low - 1 + used
    if used:
        note("lent", ORDERS, f"{low}-{last}")
    if then == "late":
        later = reservation.reserve("orders", size)
        must_be_refused(_return, high, last, lent.ticket)
        # Max is now what the first range ended with.
        _return(later.range.high, later.range.low - 1, later.ticket)
        must_be_refused(_return, high, last, lent.ticket)
        return
    settle(_return, then, low, high, last, lent.ticket)


def settle(
    give_back: Return, then: str, low: int, high: int, last: int, ticket: str
) -> None:
    """Return the rest of a range in one way or another, or not."""
    if then in ("proper", "replayed"):
        give_back(high, last, ticket)
    if then == "replayed":
        must_be_refused(give_back, high, last, ticket)
    elif then == "forged":
        for forged in FORGED, "", ticket[:-1], "ü":
            must_be_refused(give_back, high, last, forged)
    elif then == "below" and low > 1:
        must_be_refused(give_back, high, low - 2, ticket)
        must_be_refused(give_back, high, high + 1, ticket)


def must_be_refused(give_back: Return, high: int, last: int, ticket: str) -> None:
    if give_back(high, last, ticket):
        note("failed", f"A return of {last} to {high} was taken that must not be.")


def _return(high: int, last: int, ticket: str) -> bool:
    try:
        new: Any = returning.return_range("orders", high, last, ticket)
    except RangeNotReturned:
        return False
    assert new == last, f"Max is {new}, not {last}"
    return True
