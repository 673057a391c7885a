"""Turn errors of the layers below into answers over HTTP."""

import logging
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import DataError, Error, IntegrityError
from django.utils.translation import gettext_lazy as _
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError

from django_hilo._operations.lending import BUSY
from django_hilo.exceptions import (
    CounterExhausted,
    CounterNotLowered,
    HiLoError,
    RangeNotLent,
    RangeNotReturned,
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
    default_detail = _("The request failed; see the server's log for the reason.")
    default_code = "unavailable"


class Busy(Unavailable):
    """It may work when asked again; DRF makes Retry-After of ``wait``, in seconds."""

    default_detail = _("The database is busy or unavailable; try again.")
    default_code = "busy"
    wait = 1


_ABOUT_THE_COUNTER: dict[type[Exception], type[APIException]] = {
    CounterExhausted: Conflict,
    CounterNotLowered: Conflict,
    RangeNotLent: Conflict,
    RangeNotReturned: NotReturned,
}


def as_api_exception(error: Exception) -> Exception:
    """Return what DRF answers with, or the error itself where it knows it already."""
    meaning = _ABOUT_THE_COUNTER.get(type(error))
    if meaning is not None:
        return meaning(str(error))
    if isinstance(error, (DataError, IntegrityError)):
        return error
    if isinstance(error, (HiLoError, Error)):
        # Their texts tell of the server: hosts, ports, aliases. They are for its log.
        logger.warning("A request over REST failed: %s", error)
        return Busy() if isinstance(error, BUSY) else Unavailable()
    if isinstance(error, SuspiciousOperation):
        return ParseError(str(error))
    return error
