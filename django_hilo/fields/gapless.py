"""The text id without gaps: `GaplessIdField`."""

from typing import Any

from django.db import connections, models

from django_hilo._allocation import explicit_ids
from django_hilo._database.transaction import state_of
from django_hilo.conf import settings
from django_hilo.counters import gapless
from django_hilo.exceptions import HiLoError
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._gapless_numbers import distinct, give_gapless, giving_gapless
from django_hilo.fields._ids import Instances, Save
from django_hilo.fields._text_ids import Got_co, IdField, Set_contra, VerboseName
from django_hilo.identifiers import family_of


class GaplessIds(AssignedIds):
    """The ids of a `GaplessIdField`; the counter knows nothing of ranges."""

    is_gapless = True

    def is_missing(self, instance: models.Model) -> bool:
        return super().is_missing(instance) or self.was_taken_back(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        return self.is_missing(instance)

    def assign(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> dict[str, int]:
        found = self.check_explicit(instances, using)
        missing = distinct(each for each in instances if self.is_missing(each))
        if save is not None:
            new = [each for each in instances if each._state.adding] if found else []
            beside = self.explicit_ids(new, using).values()
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

    def check_jump(self, ids: dict[str, int], using: str) -> None:
        highest, name = max(ids, key=lambda id: ids[id]), self.field.collection_name
        if ids[highest] > settings.MAX_FLOOR_JUMP:
            last = gapless.last_gapless_number(name, using)
            explicit_ids.refuse_jump(last, ids[highest], highest, name)

    def raise_over(self, ids: dict[str, int], using: str) -> None:
        name = self.field.collection_name
        gapless.seed_gapless_number(name, max(ids.values()), using)


class GaplessIdField(IdField[Set_contra, Got_co]):
    """A text id such as ``invoices/1``; the next one is ``invoices/2``, without a gap.

    The number is taken in the transaction that inserts the row: a rollback gives it
    back, and other writers of the collection wait for the commit (RavenDB's
    identities). ``collection`` and ``any_id`` are as in `HiLoField`; ``max_length`` is
    64.
    """

    kind = GaplessIds

    def __init__(
        self,
        verbose_name: VerboseName = None,
        *,
        collection: str | None = None,
        any_id: bool = False,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        kwargs.setdefault("max_length", 64)
        super().__init__(verbose_name, any_id=any_id, **kwargs)

    def alias_of_plain_bulk(self, instance: models.Model) -> str:
        ids: Any = self.ids
        if ids.is_missing(instance):
            # It may ignore the row on a conflict without a trace.
            raise HiLoError(
                f"{self} assigns no ids in bulk_create() of a manager that is not a "
                f"HiLoManager: use one, or save()."
            )
        return super().alias_of_plain_bulk(instance)
