"""Ids that a function of the project makes, and ids that ask for another one."""

from collections.abc import Callable
from typing import Any

from django.db import models

from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import anchor_in, family_of, parse, parse_or_none

# Returns the id to store, from an instance and the id that its counter gave.
Convention = Callable[[models.Model, str], str]

# How the id ends that asks for a gapless one.
GAPLESS = "|"


def id_by(
    convention: Convention, instance: models.Model, document_id: str, field: Any
) -> tuple[str, int]:
    """Return the id that a field's convention makes of one, and its number.

    Raises `HiLoError` for an id that the counter could give to another object.
    """
    value: Any = convention(instance, document_id)
    given, fault = parse(document_id), None
    if not isinstance(value, str) or not value or "\x00" in value:
        fault = "it must be a string of at least one character"
    elif value.startswith("/") or is_request(value):
        fault = "it must not start with '/' or end in '|' or a separator"
    else:
        made = parse_or_none(value)
        is_other = made and made.number != given.number
        if made and is_other and family_of(made) == family_of(given):
            fault = (
                f"the counter will give the number {made.number} to another object; "
                f"keep {given.number}, or use a pattern other than {given}"
            )
    if fault is not None:
        raise HiLoError(f"The convention of {field} returned {value!r}: {fault}.")
    return value, given.number


def is_request(value: Any) -> bool:
    """Whether a value ends as an id that asks for another; an anchor may end so."""
    return (
        isinstance(value, str)
        and not value[-1:].isalnum()  # most ids: no setting is read for them
        and value.endswith((GAPLESS, settings.SEPARATOR))
        and anchor_in(value) is None
    )
