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
    CounterNotUsed,
    HiLoError,
    RangeNotLent,
    RangeNotReturned,
)

logger = logging.getLogger("django_hilo")


class Conflict(APIException):
    """The state of the counter does not allow it; trying again does not help."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


class NotReturned(Conflict):
    """The numbers stay a gap."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        answer: Any = {"returned": False, "detail": detail}  # DRF would say "False"
        self.detail = answer


class Unavailable(APIException):
    """The server must be fixed first."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = _("The request failed; see the server's log for the reason.")
    default_code = "unavailable"


class Busy(Unavailable):
    """Trying again may help; DRF sends ``wait``, in seconds, as Retry-After."""

    default_detail = _("The database is busy or unavailable; try again.")
    default_code = "busy"
    wait = 1


_ABOUT_THE_COUNTER: dict[type[Exception], type[APIException]] = {
    CounterExhausted: Conflict,
    CounterNotLowered: Conflict,
    CounterNotUsed: Conflict,
    RangeNotLent: Conflict,
    RangeNotReturned: NotReturned,
}


def as_api_exception(error: Exception) -> Exception:
    """Return DRF's exception for an error, or the error itself if DRF handles it."""
    meaning = _ABOUT_THE_COUNTER.get(type(error))
    if meaning is not None:
        return meaning(str(error))
    if isinstance(error, (DataError, IntegrityError)):
        return error
    if isinstance(error, (HiLoError, Error)):
        # Their texts may name hosts, ports and aliases, so they go to the log only.
        logger.warning("A request over REST failed: %s", error)
        return Busy() if isinstance(error, BUSY) else Unavailable()
    if isinstance(error, SuspiciousOperation):
        return ParseError(str(error))
    return error
