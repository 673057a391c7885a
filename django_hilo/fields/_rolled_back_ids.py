"""The ids of objects whose rows, and numbers, were rolled back."""

from collections.abc import Iterable
from typing import Any

from django.db import models

from django_hilo._allocation.burnt_numbers import make_sure
from django_hilo.exceptions import HiLoError
from django_hilo.fields._notes import Instances, Note, ReadsNotes


class MakesSure(ReadsNotes):
    """The part of a field that keeps the rows of others where it meets them.

    Another process may have reserved a number since its rollback.
    """

    name: Any
    # Methods of each kind of fields.
    target: Any
    number_in: Any
    assign: Any

    def make_sure(self, instances: Instances, using: str) -> None:
        """Let instances keep ids that no other process can have; else `HiLoError`."""
        lost = [each for each in instances if self.is_rolled_back(each, using)]
        lost = [each for each in lost if not self.was_taken_back(each)]
        if not lost:
            return
        numbers = [self._number_of(each, using) for each in lost]
        sure = make_sure(self.target(using), set(numbers))
        for each, number in zip(lost, numbers, strict=True):
            if number not in sure:
                raise HiLoError(
                    f"The transaction that gave {self.value_of(each)!r} to a "
                    f"{each._meta.label} was rolled back, and another process may have "
                    f"the id now, so the object is not saved. Create a new object, and "
                    f"new ones in place of those that refer to it. If none does, set "
                    f"{self.attname} = None."
                )
        for each, number in zip(lost, numbers, strict=True):
            mark = sure[number]
            note = None if mark is None else Note(using, mark, number)
            self.assign([each], [self.value_of(each)], using, [note])

    def _number_of(self, instance: models.Model, using: str) -> int:
        """Return the number of an id, 0 if it cannot be told."""
        note, value = self.note_of(instance), self.value_of(instance)
        known = note.number if note else None
        return known or self.number_in(value, self.target(using), using) or 0

    def refuse_update(
        self, instance: models.Model, using: str, names: Iterable[str] | None
    ) -> None:
        """Raise `HiLoError` if an update would write to, or with, a rolled-back id.

        ``names`` are the fields that are written; None: all.
        """
        is_meant = names is None or self.name in names or self.attname in names
        if (is_meant or self.is_key) and self.is_rolled_back(instance, using):
            raise HiLoError(
                f"The row of {instance._meta.label} {self.value_of(instance)!r} was "
                f"rolled back, and another row may have this id now. Call save() "
                f"without arguments first."
            )
