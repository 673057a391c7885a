"""The ids of rows that were rolled back or refused: which of them objects may keep."""

from dataclasses import replace
from typing import Any

from django.db import IntegrityError, connections, models

from django_hilo._allocation.burnt_numbers import (
    make_sure,
    note_inserted,
    was_inserted,
)
from django_hilo._database.dialects import dialect_of
from django_hilo.fields._notes import (
    NOTE,
    Doubt,
    Instances,
    ReadsNotes,
    remember_former,
)

# Of a number that another process may have.
LOST = object()


class MakesSure(ReadsNotes):
    """The part of a field that makes sure of an id, or gives another one.

    An object keeps the id of a row that was rolled back, since other objects refer to
    it. Its next save must not write over a row that got the same id meanwhile.
    """

    model: Any
    column: Any
    # Methods of each kind of fields.
    target: Any
    number_in: Any
    give: Any
    assign: Any

    def is_doubtful(self, instance: models.Model, using: str) -> bool:
        """Whether a row of others on ``using`` may have an instance's id."""
        note = self.note_of(instance)
        if note is None or not note.is_doubtful:
            return False
        # With another counter, it is an explicit id there.
        is_same = note.is_gapless or note.using == using
        return is_same or self.target(note.using).key == self.target(using).key

    def make_sure(self, instances: Instances, using: str) -> None:
        """Give other ids to instances if another process or row may have theirs."""
        doubtful = [each for each in instances if self.is_doubtful(each, using)]
        if not doubtful:
            return
        lost = [each for each in doubtful if self._is_refused(each)]
        burnt = [each for each in doubtful if self._is_burnt(each)]
        sure = make_sure(self.target(using), set(map(self._number_of, burnt)))
        for each in burnt:
            mark = sure.get(self._number_of(each), LOST)
            if mark is LOST:
                lost.append(each)
                continue
            note = getattr(each._state, NOTE + self.attname)
            kept = replace(
                note, using=using, mark=mark, is_inserted=False, is_kept=True
            )
            self.assign([each], [self.value_of(each)], [kept])
        if lost:
            self._give_others(lost, using)

    def _is_burnt(self, instance: models.Model) -> bool:
        note = self.note_of(instance)
        is_burnt = note and note.is_rolled_back and not note.is_gapless
        return bool(is_burnt and not self._is_refused(instance))

    def _number_of(self, instance: models.Model) -> int:
        """Return the number of an id that this process has given, else 0."""
        note = self.note_of(instance)
        if note is None or note.is_gapless or (note.mark and note.mark.is_foreign):
            return 0
        value, target = self.value_of(instance), self.target(note.using)
        return note.number or self.number_in(value, target, note.using) or 0

    def must_insert(self, instance: models.Model) -> bool:
        """Whether no row of ours can have an assigned id.

        A copy of an instance may have saved the id that both have kept.
        """
        note = getattr(instance._state, NOTE + self.attname)
        return not (note.is_kept and self.is_inserted(instance))

    def is_inserted(self, instance: models.Model) -> bool:
        """Whether this process has inserted a row with a number that was kept."""
        note = getattr(instance._state, NOTE + self.attname)
        return was_inserted(self.target(note.using), self._number_of(instance))

    def note_inserted(self, instances: Instances, using: str) -> None:
        """Note that the rows of instances were inserted, or updated."""
        name = NOTE + self.attname
        for each in instances:
            note = getattr(each._state, name, None)
            if note is not None:
                if note.is_kept and note.using == using:
                    note_inserted(self.target(using), self._number_of(each))
                setattr(each._state, name, note.inserted)

    def _is_refused(self, instance: models.Model) -> bool:
        """Whether a row has an instance's id; the doubt ends if not."""
        note, id = self.note_of(instance), str(self.value_of(instance))
        if note is None or note.doubt is None:
            return False
        doubt = note.doubt
        if doubt.with_rows is None:
            doubt.with_rows = self._with_rows(doubt, note.using)
        if id not in doubt.with_rows:
            setattr(instance._state, NOTE + self.attname, replace(note, doubt=None))
        return id in doubt.with_rows

    def _with_rows(self, doubt: Doubt, using: str) -> set[str]:
        ids = doubt.ids
        rows = self.model._base_manager.using(using)
        found: set[str] = set()
        at_once = connections[using].features.max_query_params or len(ids)
        for start in range(0, len(ids), at_once):
            some = {f"{self.attname}__in": ids[start : start + at_once]}
            found |= set(
                map(str, rows.filter(**some).values_list(self.attname, flat=True))
            )
        # As PostgreSQL's row security hides rows.
        is_hidden = doubt.is_certain and not found
        return set(map(str, ids)) if is_hidden else found

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
        is_taken = dialect.is_taken(error, table, str(self.column), self.is_key)
        if is_taken is False or not refused:
            return False
        ids, text = [self.value_of(each) for each in refused], str(error)
        # As PostgreSQL and MySQL quote them.
        named = {str(id) for id in ids if f"=({id})" in text or f"'{id}'" in text}
        with_rows = named if named and is_taken else None
        doubt, name = Doubt(ids, with_rows, bool(is_taken)), NOTE + self.attname
        for each in refused:
            note = getattr(each._state, name)
            setattr(each._state, name, replace(note, doubt=doubt))
        return bool(is_taken)


def key_behind(field: Any) -> Any:
    """Return the field that a relation names, through links between parents."""
    while field.remote_field:
        field = field.target_field
    return field
