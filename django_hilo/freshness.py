"""What a save must know of an instance's ids, kept on its ``_state``.

A fresh id is one of ours that no row has yet: it needs no UPDATE first, and raises no
floor. Each field's is two attributes, its value and the alias that it was given for.

Objects come by the hundred thousand, so none is given what the garbage collector would
have to look at: no tuple, and no ``__dict__``, which Python makes for an object when it
is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from sys import intern
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.base import ModelState

if TYPE_CHECKING:
    Field = models.Field[Any, Any]

_WATCHED = intern("hilo_watched")
_DEFAULT = intern("hilo_default")


@cache
def _marks(name: str) -> tuple[str, str]:
    return intern(f"hilo_fresh_{name}"), intern(f"hilo_alias_{name}")


def make_room(field: Field) -> None:
    """Let Python keep a field's marks in objects that have no ``__dict__``.

    It does so for attributes that one of the first objects of a class had.
    """
    early = ModelState()
    for mark in (_WATCHED, _DEFAULT, *_marks(field.attname)):
        setattr(early, mark, None)


def known_value(instance: models.Model, field: Field, default: Any = None) -> Any:
    """Return a field's value, ``default`` where it was deferred, as no key is."""
    if field.primary_key:
        return getattr(instance, field.attname)
    return vars(instance).get(field.attname, default)


def mark_fresh(instance: models.Model, field: Field, value: object, using: str) -> None:
    """Note that a field's value is new, for a row on ``using``."""
    fresh, alias = _marks(field.attname)
    state = instance._state
    setattr(state, fresh, value)
    setattr(state, alias, using)


def set_fresh(
    instances: Iterable[models.Model],
    field: Field,
    values: Iterable[object],
    using: str,
) -> None:
    """Set a field's values, and note that they are new, for rows on ``using``."""
    name = field.attname
    fresh, alias = _marks(name)
    for instance, value in zip(instances, values, strict=True):
        setattr(instance, name, value)
        state = instance._state
        setattr(state, fresh, value)
        setattr(state, alias, using)


def fresh_on(instance: models.Model, field: Field) -> str | None:
    """Return for which alias a field's value was given, None where it is not new."""
    fresh, alias = _marks(field.attname)
    state = instance._state
    value = getattr(state, fresh, None)
    if value is None or known_value(instance, field) != value:
        return None
    using: str = getattr(state, alias)
    return using


def is_fresh(instance: models.Model, field: Field) -> bool:
    """Whether a field's value is new."""
    return fresh_on(instance, field) is not None


def without_fresh(
    instances: Iterable[models.Model], field: Field, using: str
) -> tuple[list[models.Model], list[models.Model]]:
    """Return the instances without a value, and those with an explicit one.

    Explicit is what was not given for rows on ``using``.
    """
    missing, explicit = [], []
    name, is_key = field.attname, field.primary_key
    fresh, alias = _marks(name)
    # As known_value() and fresh_on(), without a call for each of a million rows.
    for instance in instances:
        value = getattr(instance, name) if is_key else vars(instance).get(name, field)
        if value is None or value == "":
            missing.append(instance)
            continue
        state = instance._state
        is_ours = getattr(state, fresh, None) == value
        if (not is_ours or getattr(state, alias) != using) and value is not field:
            explicit.append(instance)
    return missing, explicit


def without_value(
    instances: Iterable[models.Model], field: Field
) -> list[models.Model]:
    """Return the instances without a value, each of them once."""
    name, is_key = field.attname, field.primary_key
    missing = {}
    for instance in instances:
        value = getattr(instance, name) if is_key else vars(instance).get(name, field)
        if value is None or value == "":
            missing[id(instance)] = instance
    return list(missing.values())


def explicit_on(
    instances: Iterable[models.Model], field: Field, using: str
) -> list[models.Model]:
    """Return the instances with a value that was not given for rows on ``using``."""
    return without_fresh(instances, field, using)[1]


def note_inserted(instance: models.Model, field: Field) -> None:
    """Note that a row has the fresh value now, and nobody watches the instance."""
    state = instance._state
    setattr(state, _marks(field.attname)[0], None)
    setattr(state, _WATCHED, False)


def settle(
    instances: Iterable[models.Model], field: Field, using: str
) -> list[models.Model]:
    """Note that rows on ``using`` have the values now that are new.

    Returns the instances with other values, for `forget_all_fresh`.
    """
    others = []
    name, is_key = field.attname, field.primary_key
    fresh, alias = _marks(name)
    # As fresh_on(), without a call for each of a million rows.
    for instance in instances:
        state = instance._state
        value = getattr(state, fresh, None)
        known = getattr(instance, name) if is_key else vars(instance).get(name)
        if value is None or known != value or getattr(state, alias) != using:
            others.append(instance)
        else:
            setattr(state, fresh, None)
    return others


def forget_all_fresh(instances: Iterable[models.Model], field: Field) -> None:
    """Note that rows have the values now."""
    fresh, _ = _marks(field.attname)
    for instance in instances:
        state = instance._state
        setattr(state, fresh, None)
        setattr(state, _DEFAULT, False)


def leave_to_default(instance: models.Model) -> None:
    """Note that the database gives the value, by the column's default."""
    setattr(instance._state, _DEFAULT, True)


def is_from_default(instance: models.Model) -> bool:
    """Whether the database gave the value, or is about to."""
    return getattr(instance._state, _DEFAULT, False)


def watch(instance: models.Model) -> None:
    """Note that whoever saves the instance looks after its explicit ids."""
    setattr(instance._state, _WATCHED, True)


def unwatch(instance: models.Model) -> None:
    """Note that nobody does."""
    setattr(instance._state, _WATCHED, False)


@contextmanager
def watched(instances: Iterable[models.Model]) -> Iterator[None]:
    """Watch the instances in the block."""
    states = [instance._state for instance in instances]
    for state in states:
        setattr(state, _WATCHED, True)
    try:
        yield
    finally:
        for state in states:
            setattr(state, _WATCHED, False)


def is_watched(instance: models.Model) -> bool:
    """Whether somebody looks after the explicit ids of an instance."""
    return getattr(instance._state, _WATCHED, False)
