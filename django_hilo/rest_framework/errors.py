"""What the errors of the layers below are over HTTP."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import OperationalError
from django.utils.translation import gettext_lazy as _
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError

from django_hilo.exceptions import (
    ConcurrencyError,
    CounterExhausted,
    CounterNotLowered,
    HiLoError,
    RangeNotReturned,
    ReservationTimeout,
)

logger = logging.getLogger("django_hilo")


class Conflict(APIException):
    """The counter, as it is now, does not allow it; asking again does not help."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


class NotReturned(Conflict):
    """The numbers stay a gap."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        answer: Any = {"returned": False, "detail": detail}  # DRF would say "False"
        self.detail = answer


class Unavailable(APIException):
    """The server must be mended first."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "unavailable"


class Busy(Unavailable):
    """It may work when asked again; DRF makes Retry-After of ``wait``, in seconds."""

    default_detail = _("The database is busy or away; try again.")
    default_code = "busy"
    wait = 1


_MEANINGS: dict[type[HiLoError], type[APIException]] = {
    ReservationTimeout: Busy,
    ConcurrencyError: Busy,
    CounterExhausted: Conflict,
    CounterNotLowered: Conflict,
    RangeNotReturned: NotReturned,
}


def as_api_exception(error: Exception) -> Exception:
    """Return what DRF answers with, or the error itself where it knows it already."""
    if isinstance(error, HiLoError):
        # Others, as that of missing tables, tell of the server and not of the request.
        return _MEANINGS.get(type(error), Unavailable)(str(error))
    if isinstance(error, OperationalError):
        logger.warning("A request over REST failed: %s", error)
        return Busy()
    if isinstance(error, SuspiciousOperation):
        return ParseError(str(error))
    return error
