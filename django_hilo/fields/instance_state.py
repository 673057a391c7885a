"""What a save must know about the ids of an instance, kept on its ``_state``.

An *assigned* id is one that a field gave and that no row has yet: the save needs no
UPDATE first, and the id raises no floor. Every other id is *explicit*. A field keeps
two attributes, the assigned value and the alias of the database it was assigned for.

These are plain attributes because objects come by the hundred thousand: a tuple or a
dict for each would be work for the garbage collector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from sys import intern
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    Field = models.Field[Any, Any]

_HANDLED = "hilo_handled"
_DEFAULT = "hilo_default"


@cache
def _names(attname: str) -> tuple[str, str]:
    return intern(f"hilo_assigned_{attname}"), intern(f"hilo_alias_{attname}")


def value_of(instance: models.Model, field: Field, deferred: Any = None) -> Any:
    """Return a field's value, or ``deferred`` if the value was not loaded."""
    if field.primary_key:
        # Keys are never deferred, and Python makes a __dict__ when it is asked for one.
        return getattr(instance, field.attname)
    return vars(instance).get(field.attname, deferred)


def assign(instance: models.Model, field: Field, value: object, using: str) -> None:
    """Set an id that a field gave for a row on ``using``."""
    assigned, alias = _names(field.attname)
    setattr(instance, field.attname, value)
    setattr(instance._state, assigned, value)
    setattr(instance._state, alias, using)


def assigned_for(instance: models.Model, field: Field) -> str | None:
    """Return the alias that a field's id was assigned for, None if it is explicit."""
    assigned, alias = _names(field.attname)
    value = getattr(instance._state, assigned, None)
    if value is None or value_of(instance, field) != value:
        return None
    using: str = getattr(instance._state, alias)
    return using


def without_id(instances: Iterable[models.Model], field: Field) -> list[models.Model]:
    """Return the instances without an id, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    missing = {
        id(instance): instance
        for instance in instances
        if value_of(instance, field, field) in (None, "")
    }
    return list(missing.values())


def with_explicit_id(
    instances: Iterable[models.Model], field: Field, using: str
) -> list[models.Model]:
    """Return the instances with an id that was not assigned for rows on ``using``."""
    name, is_key = field.attname, field.primary_key
    assigned, alias = _names(name)
    found = []
    # As value_of() and assigned_for(), without two calls for each of a million rows.
    for instance in instances:
        value = getattr(instance, name) if is_key else vars(instance).get(name)
        if value is None or value == "":
            continue
        state = instance._state
        if getattr(state, assigned, None) != value or getattr(state, alias) != using:
            found.append(instance)
    return found


def mark_saved(instances: Iterable[models.Model], field: Field) -> None:
    """Note that rows have the instances' ids now."""
    assigned, _ = _names(field.attname)
    for instance in instances:
        state = instance._state
        setattr(state, assigned, None)
        if getattr(state, _DEFAULT, False):
            setattr(state, _DEFAULT, False)


def leave_to_default(instance: models.Model) -> None:
    """Note that the default of the column gives the id."""
    setattr(instance._state, _DEFAULT, True)


def is_from_default(instance: models.Model) -> bool:
    """Whether the default of the column gave the id, or is about to."""
    return getattr(instance._state, _DEFAULT, False)


def set_handled(instance: models.Model, is_handled: bool) -> None:
    """Note whether a save looks after the instance's ids."""
    setattr(instance._state, _HANDLED, is_handled)


@contextmanager
def handled(instances: Iterable[models.Model]) -> Iterator[None]:
    """Look after the instances' ids in the block."""
    states = [instance._state for instance in instances]
    for state in states:
        setattr(state, _HANDLED, True)
    try:
        yield
    finally:
        for state in states:
            setattr(state, _HANDLED, False)


def is_handled(instance: models.Model) -> bool:
    """Whether the caller of ``pre_save()`` looks after the instance's ids."""
    return getattr(instance._state, _HANDLED, False)
