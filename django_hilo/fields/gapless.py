"""The text id without gaps: `GaplessIdField`."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import IntegrityError, connections, models

from django_hilo._allocation import explicit_ids
from django_hilo._database.transaction import state_of
from django_hilo.conf import settings
from django_hilo.counters import gapless
from django_hilo.exceptions import HiLoError
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._gapless_numbers import distinct, give_gapless, giving_gapless
from django_hilo.fields._ids import Explicit, Instances, Save
from django_hilo.fields._in_series import InSeries, ids_by_series
from django_hilo.fields._text_ids import Got_co, IdField, Set_contra, VerboseName
from django_hilo.identifiers import IdFormat, family_of


class GaplessIds(AssignedIds):
    """The ids of a `GaplessIdField`; the counter knows nothing of ranges."""

    is_gapless = True

    def is_missing(self, instance: models.Model) -> bool:
        return super().is_missing(instance) or self.was_taken_back(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        return self.is_missing(instance)

    def assign(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> Explicit:
        found = self.check_explicit(instances, using)
        missing = distinct(each for each in instances if self.is_missing(each))
        self.load([each for each in missing if each._state.db is not None])
        if save is not None:
            new = [each for each in instances if each._state.adding] if found else []
            beside = self.explicit_ids(new, using)
            save.blocks.append(giving_gapless(self, missing, using, beside))
        elif missing:
            self.give(missing, using)
        return found

    def give(self, instances: list[models.Model], using: str) -> None:
        connection = connections[using]
        if not connection.in_atomic_block:
            raise HiLoError(
                f"{self.field} assigns ids in the transaction that inserts the rows: "
                f"use transaction.atomic(), save(), or bulk_create() of a HiLoManager."
            )
        give_gapless(self, instances, using, state_of(connection).mark())

    def number_in(self, value: Any, using: str) -> int | None:
        id = self.field.parsed(value, using)
        own = (self.field.collection_name.lower(), "", "")
        return id.number if id and family_of(id) == own else None

    def shares_counter(self, alias: str, using: str) -> bool:
        return False  # each database counts for itself

    def note_explicit(self, value: Any) -> None:
        self.field.warn_of(value)

    def by_name(self, ids: Explicit) -> Iterable[tuple[str, dict[str, int]]]:
        """Return the names of counters, each with the explicit ids it could give."""
        return [(self.field.collection_name, ids)]

    def check_jump(self, ids: Explicit, using: str) -> None:
        for name, numbers in self.by_name(ids):
            highest = max(numbers, key=lambda id: numbers[id])
            if numbers[highest] > settings.MAX_FLOOR_JUMP:
                last = gapless.last_gapless_number(name, using)
                explicit_ids.refuse_jump(last, numbers[highest], highest, name)

    def seed_gapless(self, ids: Explicit, using: str) -> None:
        for name, numbers in sorted(self.by_name(ids)):
            gapless.seed_gapless_number(name, max(numbers.values()), using)

    raise_over = seed_gapless

    def refused(self, instances: Instances, error: IntegrityError, using: str) -> None:
        given = [each for each in instances if self.assigned_for(each) == using]
        # MySQL names the value and the constraint, SQLite only the columns.
        text = str(error)
        named = [each for each in given if str(self.value_of(each)) in text]
        if not named and self.attname in text:
            named = given
        if named:
            error.add_note(
                f"If a row has the {self.field.name} {self.value_of(named[0])!r} "
                f"already, the counter is too low: run manage.py hilo_raise_max "
                f"--database={using}"
            )


class GaplessSeriesIds(InSeries, GaplessIds):
    """The ids of a `GaplessIdField` with ``per``."""

    def gapless_parts(
        self, instances: list[models.Model], using: str
    ) -> Iterable[tuple[str, IdFormat, list[models.Model]]]:
        groups = self.by_series(instances).items()
        gapless.make_counters([series.name for series, _ in groups], using)
        return [(series.name, series.format, mine) for series, mine in groups]

    def by_name(self, ids: Explicit) -> Iterable[tuple[str, dict[str, int]]]:
        return [(series.name, mine) for series, mine in ids_by_series(ids).items()]

    def seed_gapless(self, ids: Explicit, using: str) -> None:
        gapless.make_counters({series.name for series, _ in ids}, using)
        super().seed_gapless(ids, using)

    raise_over = seed_gapless


class GaplessIdField(IdField[Set_contra, Got_co]):
    """A text id such as ``invoices/1``; the next one is ``invoices/2``, without a gap.

    The number is taken in the transaction that inserts the row: a rollback gives it
    back, and other writers of the collection wait for the commit (RavenDB's
    identities). ``collection``, ``per``, ``look`` and ``any_id`` are as in `HiLoField`;
    ``max_length`` is 64.
    """

    kind = GaplessIds
    kind_in_series = GaplessSeriesIds

    def __init__(
        self,
        verbose_name: VerboseName = None,
        *,
        collection: str | None = None,
        per: Sequence[str] = (),
        look: str | None = None,
        any_id: bool = False,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        kwargs.setdefault("max_length", 64)
        super().__init__(verbose_name, any_id=any_id, per=per, look=look, **kwargs)

    def alias_of_plain_bulk(self, instance: models.Model) -> str:
        ids: Any = self.ids
        if ids.is_missing(instance):
            # It may ignore the row on a conflict without a trace.
            raise HiLoError(
                f"{self} assigns no ids in bulk_create() of a manager that is not a "
                f"HiLoManager: use one, or save()."
            )
        return super().alias_of_plain_bulk(instance)
