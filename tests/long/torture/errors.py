"""Which errors a caller must live with, and what they leave to be done."""

import http.client

from django.db import InterfaceError, OperationalError, connection, connections
from django.db.transaction import TransactionManagementError

from django_hilo.exceptions import ConcurrencyError, HiLoError, ReservationTimeout
from tests.long.torture.notes import note


class Undo(Exception):
    """Rolls a block back."""


class Doomed(Exception):
    """The transaction can only roll back: a statement of its own failed before."""


class Busy(Exception):
    """The site says that its database is busy or away, or does not answer."""


# Of django_hilo: what waits, or lasts, for too long.
OF_HILO = (ReservationTimeout, ConcurrencyError)
# TransactionManagementError: a savepoint was lost with its connection.
EXPECTED = (
    *OF_HILO,
    OperationalError,
    InterfaceError,
    TransactionManagementError,
    Doomed,
    Busy,
)
OF_THE_WEB = (OSError, http.client.HTTPException)


def expect(error: BaseException) -> None:
    """Note an expected error, and leave a connection that may be of no use."""
    kind = type(error).__name__
    if isinstance(error, HiLoError) and error.__cause__ is not None:
        kind += f" of {type(error.__cause__).__name__}"
    note("error", kind, str(error).split("\n")[0][:200])
    if not connection.in_atomic_block and not isinstance(error, Busy | HiLoError):
        connections.close_all()
