"""Notes about the ids of an instance that a save reads, kept on its ``_state``.

An *assigned* id is one that a field gave and that no row has yet: the save needs no
UPDATE first, and the id raises no floor. Every other id is *explicit*. A *taken* id is
a gapless one, which a rollback of its transaction takes back. An instance is *handled*
while a caller of ``pre_save()`` looks after its ids.

The assigned value and its alias are two attributes: objects come by the hundred
thousand, and a tuple for each would be work for the garbage collector.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import models

Instances = Sequence[models.Model]

# Each is followed by the attname of the field.
ASSIGNED = "hilo_assigned_"
ALIAS = "hilo_alias_"
# A value, the value before it, and the transaction that took it.
TAKEN = "hilo_taken_"


def value_of(instance: models.Model, field: Any) -> Any:
    """Return a field's value, or None if the value was not loaded."""
    if field.primary_key:
        # Keys are never deferred, and Python makes a __dict__ when it is asked for one.
        return getattr(instance, field.attname)
    return vars(instance).get(field.attname)


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    found = {}
    for instance in instances:
        found[id(instance)] = instance  # one without a key cannot be hashed
    return list(found.values())


def assigned_for(instance: models.Model, field: Any) -> str | None:
    """Return the alias that a field's id was assigned for, None if it is explicit."""
    assigned = getattr(instance._state, ASSIGNED + field.attname, None)
    # A field that was assigned is not deferred.
    if assigned is None or getattr(instance, field.attname) != assigned:
        return None
    using: str = getattr(instance._state, ALIAS + field.attname)
    return using


def mark_saved(instances: Instances, field: Any) -> None:
    """Note that rows have the instances' ids now."""
    for instance in instances:
        setattr(instance._state, ASSIGNED + field.attname, None)


def was_rolled_back(instance: models.Model, field: Any) -> bool:
    """Whether an instance has a gapless id that its rollback took back."""
    taken = getattr(instance._state, TAKEN + field.attname, None)
    if taken is None or value_of(instance, field) != taken[0]:
        return False
    return taken[2] is not None and taken[2].was_rolled_back()


@contextmanager
def handled(instances: Iterable[Any]) -> Iterator[None]:
    """Look after the instances' ids in the block."""
    instances = list(instances)
    for instance in instances:
        instance._state.hilo_handled = True
    try:
        yield
    finally:
        for instance in instances:
            instance._state.hilo_handled = False
