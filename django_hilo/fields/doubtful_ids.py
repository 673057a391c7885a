"""The ids of rows that were rolled back or refused: which of them objects may keep."""

from typing import Any

from django.db import IntegrityError, connections, models

from django_hilo._allocation.burnt_numbers import make_sure
from django_hilo._allocation.target import Target
from django_hilo._database.dialects import dialect_of
from django_hilo.fields.instance_state import (
    ALIAS,
    ASSIGNED,
    FORMER,
    NOTE,
    Doubt,
    Instances,
    Note,
    ReadsNotes,
)


class MakesSure(ReadsNotes):
    """The part of a field that makes sure of an id, or gives another one.

    An object keeps the id of a row that was rolled back, since other objects refer to
    it. Its next save must not write over a row that got the same id meanwhile.
    """

    model: Any
    column: Any

    def target(self, using: str) -> Target:
        """Return the counter of rows on ``using``."""
        raise NotImplementedError  # pragma: no cover - fields of each kind have one

    def give(self, instances: list[models.Model], using: str) -> None:
        """Give new ids to instances, whatever they have."""
        raise NotImplementedError  # pragma: no cover - fields of each kind have one

    def make_sure(self, noted: Instances, using: str) -> None:
        """Give other ids to instances if another process or row may have theirs."""
        lost = [each for each in noted if self._is_refused(each)]
        burnt = [each for each in noted if self._is_burnt(each, using)]
        notes: list[Any] = list(map(self.note_of, burnt))
        numbers = {note.number for note in notes}
        sure = make_sure(self.target(using), numbers) if numbers else {}
        for each, note in zip(burnt, notes, strict=True):
            if note.number not in sure:
                lost.append(each)
                continue
            kept = note._replace(using=using, mark=sure[note.number], is_kept=True)
            setattr(each._state, NOTE + self.attname, kept)
            setattr(each._state, ASSIGNED + self.attname, note.id)
            setattr(each._state, ALIAS + self.attname, using)
        if lost:
            self._give_others(lost, using)

    def _is_burnt(self, instance: models.Model, using: str) -> bool:
        note = self.note_of(instance)
        if note is None or note.doubt or note.is_gapless or not note.is_rolled_back:
            return False
        # Of another counter, it is an explicit id.
        return note.using == using or (
            self.target(note.using).key == self.target(using).key
        )

    def _is_refused(self, instance: models.Model) -> bool:
        """Whether a row has an instance's id; the doubt ends if not."""
        note = self.note_of(instance)
        if note is None or note.doubt is None:
            return False
        doubt = note.doubt
        if doubt.with_rows is None:
            doubt.with_rows = self._with_rows(doubt.ids, note.using)
        if note.id not in doubt.with_rows:
            setattr(instance._state, NOTE + self.attname, note._replace(doubt=None))
        return note.id in doubt.with_rows

    def _with_rows(self, ids: list[Any], using: str) -> set[Any]:
        rows, found = self.model._base_manager.using(using), set()
        at_once = connections[using].features.max_query_params or len(ids)
        for start in range(0, len(ids), at_once):
            some = {f"{self.attname}__in": ids[start : start + at_once]}
            found |= set(rows.filter(**some).values_list(self.attname, flat=True))
        return found

    def _give_others(self, instances: list[models.Model], using: str) -> None:
        """Give other ids, and remember the former ones for objects that refer to them.

        Children by multi-table inheritance refer to them by their links.
        """
        former = [self.value_of(each) for each in instances]
        self.give(instances, using)
        for instance, id in zip(instances, former, strict=True):
            known = vars(instance._state).setdefault(FORMER, {})
            known.setdefault(self.attname, set()).add(id)
            for link in instance._meta.parents.values():
                if link and self._is_named_by(link):
                    setattr(instance, link.attname, self.value_of(instance))

    def _is_named_by(self, link: Any) -> bool:
        while link.remote_field:
            link = link.target_field
        return link is self

    def note_refused(
        self, instances: Instances, error: IntegrityError, using: str
    ) -> bool:
        """Note assigned ids that rows of others have, if an INSERT failed for them."""
        dialect, table = dialect_of(connections[using]), self.model._meta.db_table
        refused = [each for each in instances if self.assigned_for(each) == using]
        if not refused or not dialect.is_taken(error, table, str(self.column)):
            return False
        ids, text = [self.value_of(each) for each in refused], str(error)
        # As PostgreSQL and MySQL quote them.
        named = {id for id in ids if f"=({id})" in text or f"'{id}'" in text}
        doubt = Doubt(ids, named or None)
        for each, id in zip(refused, ids, strict=True):
            note = self.note_of(each) or Note(id, using)
            setattr(each._state, NOTE + self.attname, note._replace(doubt=doubt))
        return True
