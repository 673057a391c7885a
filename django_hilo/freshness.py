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


def _fresh(instance: models.Model) -> dict[str, tuple[object, str]]:
    fresh: dict[str, tuple[object, str]] = vars(instance._state).get(_FRESH, {})
    return fresh


def mark_fresh(instance: models.Model, name: str, value: object, home: str) -> None:
    """Note that a field's value is new, from the counter on the database ``home``."""
    vars(instance._state)[_FRESH] = {**_fresh(instance), name: (value, home)}


def is_fresh(instance: models.Model, name: str, home: str | None = None) -> bool:
    """Whether a field's value is new, and from ``home`` where that is given."""
    value, came_from = _fresh(instance).get(name, (None, None))
    unchanged = value is not None and instance.__dict__.get(name) == value
    return unchanged and home in (None, came_from)


def forget_fresh(instance: models.Model, name: str) -> None:
    """Note that a row has the value now."""
    vars(instance._state).pop(_DEFAULT, None)
    kept = {key: value for key, value in _fresh(instance).items() if key != name}
    vars(instance._state)[_FRESH] = kept


def leave_to_default(instance: models.Model) -> None:
    """Note that the database gives the value, by the column's default."""
    vars(instance._state)[_DEFAULT] = True


def is_from_default(instance: models.Model) -> bool:
    """Whether the database gave the value, or is about to."""
    return _DEFAULT in vars(instance._state)


@contextmanager
def watched(instances: Iterable[models.Model]) -> Iterator[None]:
    """Note that whoever saves the instances looks after their explicit ids."""
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
