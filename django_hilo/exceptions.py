"""The errors of django-hilo."""

from typing import Self

from django.db import OperationalError

__all__ = [
    "ConcurrencyError",
    "CounterExhausted",
    "CounterNotLowered",
    "CounterNotUsed",
    "HiLoError",
    "InvalidDocumentId",
    "NestedReservation",
    "RangeNotLent",
    "RangeNotReturned",
    "ReservationTimeout",
    "SourceMismatch",
    "TableMissing",
    "UnsafeSource",
]


class HiLoError(Exception):
    """Base of all errors of django-hilo; each message says what to do."""


class InvalidDocumentId(HiLoError, ValueError):
    """A text, or a part of one, is outside the grammar of ids."""


class ReservationTimeout(HiLoError, OperationalError):
    """The counter stayed locked for ``HILO["LOCK_TIMEOUT"]``, or a shorter limit."""


class ConcurrencyError(HiLoError, OperationalError):
    """A reservation kept failing for longer than ``HILO["RETRY_FOR"]``."""


class NestedReservation(ConcurrencyError):
    """A thread that is reserving a range was asked for an id in the middle of it."""

    @classmethod
    def amid(cls, work: str) -> Self:
        """Return the error of a thread that is at this work already."""
        return cls(
            f"This thread is already {work}, and code that it called asked for another "
            f"id: a finalizer (__del__), a receiver of connection_created or a signal "
            f"handler. Take ids elsewhere."
        )


class CounterExhausted(HiLoError):
    """The counter has too few numbers left under 2^63-1."""


class RangeNotReturned(HiLoError):
    """The counter refused the unused end of a range; the numbers are a gap."""


class CounterNotLowered(HiLoError):
    """Max may not fall, or the counter not go: ids would be given twice."""


class CounterNotUsed(HiLoError):
    """The ids of the collection come from another counter."""


class TableMissing(HiLoError):
    """The table of a counter is missing on the database."""


class UnsafeSource(HiLoError):
    """Another system's counter gives numbers twice as soon as two processes use it."""


class SourceMismatch(HiLoError):
    """The counter of another system is not what its source says it is."""


class RangeNotLent(HiLoError):
    """Ranges of this counter cannot be given to other programs, single ids can."""
