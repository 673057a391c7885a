"""Notes about the ids of an instance that a save reads, kept on its ``_state``.

An *assigned* id is one that a field gave and that no row has yet: the save needs no
UPDATE first, and the id raises no floor. Every other id is *explicit*. A *taken* id is
a gapless one, which a rollback of its transaction takes back. An instance is *handled*
while a caller of ``pre_save()`` looks after its ids.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import models

Instances = Sequence[models.Model]

# Each is followed by the attname of the field. The first two are no tuple, which would
# be work for the garbage collector, as objects come by the hundred thousand.
ASSIGNED = "hilo_assigned_"
ALIAS = "hilo_alias_"
# A value, the value before it, and the transaction that took it.
TAKEN = "hilo_taken_"


class ReadsNotes:
    """The part of a field that reads the notes about its ids."""

    attname: str
    primary_key: Any

    def value_of(self, instance: models.Model) -> Any:
        """Return the value of an instance, or None if the value was not loaded."""
        if self.primary_key:
            # Never deferred, and Python makes a __dict__ when it is asked for one.
            return getattr(instance, self.attname)
        return vars(instance).get(self.attname)

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is not an id."""
        if self.primary_key:  # as in `value_of`
            return getattr(instance, self.attname) in (None, "")
        return vars(instance).get(self.attname, self) in (None, "")

    def assigned_for(self, instance: models.Model) -> str | None:
        """Return the alias that the id was assigned for, None if it is explicit."""
        assigned = getattr(instance._state, ASSIGNED + self.attname, None)
        # A field that was assigned is not deferred.
        if assigned is None or getattr(instance, self.attname) != assigned:
            return None
        using: str = getattr(instance._state, ALIAS + self.attname)
        return using

    def was_rolled_back(self, instance: models.Model) -> bool:
        """Whether an instance has a gapless id that its rollback took back."""
        taken = getattr(instance._state, TAKEN + self.attname, None)
        if taken is None or self.value_of(instance) != taken[0]:
            return False
        return taken[2] is not None and taken[2].was_rolled_back()


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(each): each for each in instances}.values())


def set_handled(instances: Iterable[Any], is_handled: bool) -> None:
    """Note whether a caller of ``pre_save()`` looks after the instances' ids."""
    for instance in instances:
        instance._state.hilo_handled = is_handled
