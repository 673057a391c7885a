"""Ranges that a program reserves for itself, and returns as it should not."""

from __future__ import annotations

from typing import Any

from django_hilo.counters import reservation
from django_hilo.exceptions import RangeNotReturned
from tests.long.torture.counters import ORDERS
from tests.long.torture.notes import note

FORGED = "0123456789abcdef" * 2


def lend(size: int, used: int, then: str) -> None:
    """Reserve a range, use some of it, and do something about the rest."""
    lent = reservation.reserve("orders", size)
    low, high = lent.range.low, lent.range.high
    last = low - 1 + used
    if used:
        note("given", ORDERS, f"{low}-{last}")
    if then == "proper":
        _return(high, last, lent.ticket)
    elif then == "forged":
        for ticket in FORGED, "", lent.ticket[:-1], "ü":
            _must_be_refused(high, last, ticket)
    elif then == "below":
        _must_be_refused(high, low - 2, lent.ticket)
        _must_be_refused(high, high + 1, lent.ticket)
    elif then == "replayed":
        _return(high, last, lent.ticket)
        _must_be_refused(high, last, lent.ticket)
    elif then == "late":
        later = reservation.reserve("orders", size)
        _must_be_refused(high, last, lent.ticket)
        # Max is now what the first range ended with.
        _return(later.range.high, later.range.low - 1, later.ticket)
        _must_be_refused(high, last, lent.ticket)


def _return(high: int, last: int, ticket: str) -> bool:
    try:
        new: Any = reservation.return_range("orders", high, last, ticket)
    except RangeNotReturned:
        return False
    assert new == last, f"Max is {new}, not {last}"
    return True


def _must_be_refused(high: int, last: int, ticket: str) -> None:
    if _return(high, last, ticket):
        note("failed", f"A return of {last} to {high} was taken that must not be.")
