"""Notes about the ids of an instance that a save reads, kept on its ``_state``.

An *assigned* id is one that a field gave and that no row has yet: the save needs no
UPDATE first, and the id raises no floor. Every other id is *explicit*. A *taken* id is
a gapless one, which a rollback of its transaction takes back.

The assigned value and its alias are two attributes: objects come by the hundred
thousand, and a tuple for each would be work for the garbage collector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    Field = models.Field[Any, Any]

_ASSIGNED = "hilo_assigned_"
_ALIAS = "hilo_alias_"
_DEFAULT = "hilo_default"
_HANDLED = "hilo_handled"
_TAKEN = "hilo_taken"


def value_of(instance: models.Model, field: Field, deferred: Any = None) -> Any:
    """Return a field's value, or ``deferred`` if the value was not loaded."""
    if field.primary_key:
        # Keys are never deferred, and Python makes a __dict__ when it is asked for one.
        return getattr(instance, field.attname)
    return vars(instance).get(field.attname, deferred)


def assign(instance: models.Model, field: Field, value: object, using: str) -> None:
    """Set an id that a field gave for a row on ``using``."""
    setattr(instance, field.attname, value)
    setattr(instance._state, _ASSIGNED + field.attname, value)
    setattr(instance._state, _ALIAS + field.attname, using)


def assigned_for(instance: models.Model, field: Field) -> str | None:
    """Return the alias that a field's id was assigned for, None if it is explicit."""
    assigned = getattr(instance._state, _ASSIGNED + field.attname, None)
    if assigned is None or value_of(instance, field) != assigned:
        return None
    using: str = getattr(instance._state, _ALIAS + field.attname)
    return using


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(instance): instance for instance in instances}.values())


def with_explicit_id(
    instances: Iterable[models.Model], field: Field, using: str
) -> list[models.Model]:
    """Return the instances with an id that was not assigned for rows on ``using``."""
    return [
        instance
        for instance in instances
        if value_of(instance, field) not in (None, "")
        and assigned_for(instance, field) != using
    ]


def mark_saved(instances: Iterable[models.Model], field: Field) -> None:
    """Note that rows have the instances' ids now."""
    for instance in instances:
        setattr(instance._state, _ASSIGNED + field.attname, None)
        if is_from_default(instance):
            setattr(instance._state, _DEFAULT, False)


def leave_to_default(instance: models.Model) -> None:
    """Note that the default of the column gives the id."""
    setattr(instance._state, _DEFAULT, True)


def is_from_default(instance: models.Model) -> bool:
    """Whether the default of the column gave the id, or is about to."""
    return getattr(instance._state, _DEFAULT, False)


def note_taken(
    instance: models.Model, field: Field, before: Any, transaction: Any
) -> None:
    """Note the transaction that took the gapless id, and the value before it."""
    entry = {field.attname: (value_of(instance, field), before, transaction)}
    setattr(instance._state, _TAKEN, {**getattr(instance._state, _TAKEN, {}), **entry})


def was_rolled_back(instance: models.Model, field: Field) -> bool:
    """Whether an instance has a gapless id that its rollback took back."""
    taken = getattr(instance._state, _TAKEN, {}).get(field.attname)
    if taken is None or value_of(instance, field) != taken[0]:
        return False
    transaction = taken[2]
    return transaction is not None and transaction.was_rolled_back()


def forget_rolled_back(instance: models.Model, field: Field) -> None:
    """Restore the value that an instance had before the id that was rolled back."""
    if was_rolled_back(instance, field):
        _, before, _ = getattr(instance._state, _TAKEN)[field.attname]
        setattr(instance, field.attname, before)


def set_handled(instance: models.Model, is_handled: bool) -> None:
    """Note whether a save looks after the instance's ids."""
    setattr(instance._state, _HANDLED, is_handled)


@contextmanager
def handled(instances: Iterable[models.Model]) -> Iterator[None]:
    """Look after the instances' ids in the block."""
    instances = list(instances)
    for instance in instances:
        set_handled(instance, True)
    try:
        yield
    finally:
        for instance in instances:
            set_handled(instance, False)


def is_handled(instance: models.Model) -> bool:
    """Whether the caller of ``pre_save()`` looks after the instance's ids."""
    return getattr(instance._state, _HANDLED, False)
