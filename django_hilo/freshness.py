"""What a save must know of an instance's ids, kept on its ``_state``.

A fresh id is one of ours that no row has yet: it needs no UPDATE first, and raises no
floor. Values are replaced, never changed: copies of an instance share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import models

_FRESH = "hilo_fresh"
_WATCHED = "hilo_watched"
_DEFAULT = "hilo_default"


def mark_fresh(
    instances: Iterable[models.Model], name: str, values: Iterable[object], using: str
) -> None:
    """Note that a field's values are new, for rows on ``using``."""
    for instance, value in zip(instances, values, strict=True):
        state = vars(instance._state)
        fresh = {name: (value, using)}
        state[_FRESH] = {**state[_FRESH], **fresh} if _FRESH in state else fresh


def fresh_on(instance: models.Model, name: str) -> str | None:
    """Return for which alias a field's value was given, None where it is not new."""
    fresh = vars(instance._state).get(_FRESH)
    if not fresh:
        return None
    value, using = fresh.get(name, (None, None))
    unchanged = value is not None and instance.__dict__.get(name) == value
    return using if unchanged else None


def is_fresh(instance: models.Model, name: str) -> bool:
    """Whether a field's value is new."""
    return fresh_on(instance, name) is not None


def explicit_on(
    instances: Iterable[models.Model], name: str, using: str
) -> list[models.Model]:
    """Return the instances with a value that was not given for rows on ``using``."""
    found = []
    # As fresh_on(), without a call for each of a million rows.
    for instance in instances:
        values = vars(instance)
        value = values.get(name)
        if value is None or value == "":
            continue
        fresh = vars(values["_state"]).get(_FRESH)
        if not fresh or fresh.get(name) != (value, using):
            found.append(instance)
    return found


def forget_fresh(instances: Iterable[models.Model], name: str) -> None:
    """Note that rows have the values now."""
    for instance in instances:
        state = vars(instance._state)
        state.pop(_DEFAULT, None)
        fresh = state.pop(_FRESH, None)
        if fresh is not None and len(fresh) > (name in fresh):
            state[_FRESH] = {key: fresh[key] for key in fresh if key != name}


def leave_to_default(instance: models.Model) -> None:
    """Note that the database gives the value, by the column's default."""
    vars(instance._state)[_DEFAULT] = True


def is_from_default(instance: models.Model) -> bool:
    """Whether the database gave the value, or is about to."""
    return _DEFAULT in vars(instance._state)


def watch(instance: models.Model) -> None:
    """Note that whoever saves the instance looks after its explicit ids."""
    vars(instance._state)[_WATCHED] = True


def unwatch(instance: models.Model) -> None:
    """Note that nobody does."""
    vars(instance._state).pop(_WATCHED, None)


@contextmanager
def watched(instances: Iterable[models.Model]) -> Iterator[None]:
    """Watch the instances in the block."""
    states = [vars(instance._state) for instance in instances]
    for state in states:
        state[_WATCHED] = True
    try:
        yield
    finally:
        for state in states:
            state.pop(_WATCHED, None)


def is_watched(instance: models.Model) -> bool:
    """Whether somebody looks after the explicit ids of an instance."""
    return _WATCHED in vars(instance._state)
