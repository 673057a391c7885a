"""The ids of rows that were rolled back or refused: which of them objects may keep."""

from typing import Any

from django.db import IntegrityError, connections, models

from django_hilo._allocation.burnt_numbers import (
    make_sure,
    note_inserted,
    was_inserted,
)
from django_hilo._allocation.target import Target
from django_hilo._database.dialects import dialect_of
from django_hilo.fields._notes import (
    ALIAS,
    ASSIGNED,
    NOTE,
    Doubt,
    Instances,
    Note,
    ReadsNotes,
    remember_former,
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

    def is_doubtful(self, instance: models.Model, using: str) -> bool:
        """Whether a row of others on ``using`` may have an instance's id."""
        note = self.note_of(instance)
        if note is None or not note.is_doubtful:
            return False
        # With another counter, it is an explicit id there.
        is_same = note.is_gapless or note.using == using
        return is_same or self.target(note.using).key == self.target(using).key

    def make_sure(self, noted: Instances, using: str) -> None:
        """Give other ids to instances if another process or row may have theirs."""
        doubtful = [each for each in noted if self.is_doubtful(each, using)]
        lost = [each for each in doubtful if self._is_refused(each)]
        burnt: list[tuple[models.Model, Any]] = []
        for each in doubtful:
            note = self.note_of(each)
            if note and note.is_rolled_back and not (note.doubt or note.is_gapless):
                burnt.append((each, note))
        numbers = {note.number for _, note in burnt if not note.mark.is_foreign}
        sure = make_sure(self.target(using), numbers) if numbers else {}
        for each, note in burnt:
            if note.number not in sure:
                lost.append(each)
                continue
            kept = note._replace(using=using, mark=sure[note.number], is_kept=True)
            setattr(each._state, NOTE + self.attname, kept)
            if self.is_key:
                each._state.adding = True  # until its row is inserted
            setattr(each._state, ASSIGNED + self.attname, note.id)
            setattr(each._state, ALIAS + self.attname, using)
        if lost:
            self._give_others(lost, using)

    def must_insert(self, instance: models.Model) -> bool:
        """Whether no row of ours can have an assigned id.

        A copy of an instance may have saved the id that both have kept.
        """
        note = self.note_of(instance)
        return note is None or not note.is_kept or not self.is_inserted(note)

    def is_inserted(self, note: Note) -> bool:
        """Whether this process has inserted a row with a number that was kept."""
        return not note.is_gapless and was_inserted(
            self.target(note.using), note.number
        )

    def note_inserted(self, instance: models.Model, using: str) -> None:
        """Note that the row of an instance was inserted, or updated."""
        setattr(instance._state, ASSIGNED + self.attname, None)
        if getattr(instance._state, NOTE + self.attname, None) is not None:
            note = self.note_of(instance)
            if note is not None and note.is_kept and note.using == using:
                note_inserted(self.target(using), note.number)

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
            remember_former(instance, self.attname, id)
            for link in instance._meta.parents.values():
                if link and key_behind(link) is self:
                    remember_former(instance, link.attname, id)
                    setattr(instance, link.attname, self.value_of(instance))

    def note_refused(
        self, instances: Instances, error: IntegrityError, using: str
    ) -> bool:
        """Note assigned ids that rows of others have, if an INSERT failed for them.

        Returns whether the error names the field.
        """
        dialect, table = dialect_of(connections[using]), self.model._meta.db_table
        refused = [each for each in instances if self.assigned_for(each) == using]
        is_taken = dialect.is_taken(error, table, str(self.column))
        if is_taken is False or not refused:
            return False
        ids, text = [self.value_of(each) for each in refused], str(error)
        # As PostgreSQL and MySQL quote them.
        named = {id for id in ids if f"=({id})" in text or f"'{id}'" in text}
        doubt = Doubt(ids, named if named and is_taken else None)
        for each, id in zip(refused, ids, strict=True):
            note = self.note_of(each) or Note(id, using)
            setattr(each._state, NOTE + self.attname, note._replace(doubt=doubt))
        return bool(is_taken)


def key_behind(field: Any) -> Any:
    """Return the field that a relation names, through links between parents."""
    while field.remote_field:
        field = field.target_field
    return field
