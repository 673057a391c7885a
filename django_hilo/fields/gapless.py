"""The text id without gaps, whose number and row belong to the same transaction."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, models, transaction

from django_hilo._allocation import explicit_ids
from django_hilo._database.transaction import Mark, Outcome, state_of
from django_hilo.conf import settings
from django_hilo.counters import gapless
from django_hilo.exceptions import HiLoError
from django_hilo.fields._assigns_ids import AssignsIds
from django_hilo.fields._notes import Instances, Note, distinct
from django_hilo.fields._save import Before, Save
from django_hilo.fields._text_ids import Got_co, IdField, Set_contra, VerboseName
from django_hilo.identifiers import IdFormat, check_separator, family_of


class GaplessIdField(IdField[Set_contra, Got_co]):
    """A text id such as ``invoices/1``; the next one is ``invoices/2``, without a gap.

    The number is taken in the transaction that inserts the row: a rollback gives it
    back, and other writers of the collection wait for the commit (RavenDB's
    identities). ``collection`` and ``any_id`` are as in `HiLoField`; ``max_length`` is
    64.
    """

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

    is_gapless = True

    def is_missing(self, instance: models.Model) -> bool:
        return super().is_missing(instance) or self.was_taken_back(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        return self.is_missing(instance)

    def assign_missing(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> dict[str, int]:
        """Give ids to the instances that have none, in the caller's transaction."""
        found = self.check_explicit(instances, using)
        missing = distinct(each for each in instances if self.is_missing(each))
        if save is not None:
            new = [each for each in instances if each._state.adding] if found else []
            beside = self.explicit_ids(new, using).values()
            save.blocks.append(assigning(self, missing, using, beside))
        elif missing:
            connection = connections[using]
            if not connection.in_atomic_block:
                raise HiLoError(
                    f"{self} assigns ids in the transaction that inserts the rows: "
                    f"use transaction.atomic(), save(), or bulk_create() of a "
                    f"HiLoManager."
                )
            _assign(self, missing, using, state_of(connection).mark())
        return found

    def _alias_of_plain_bulk(self, instance: models.Model) -> str:
        if self.is_missing(instance):
            # It may ignore the row on a conflict without a trace.
            raise HiLoError(
                f"{self} assigns no ids in bulk_create() of a manager that is not a "
                f"HiLoManager: use one, or save()."
            )
        return super()._alias_of_plain_bulk(instance)

    def explicit_ids(self, instances: Instances, using: str) -> dict[str, int]:
        found: dict[str, int] = {}
        own = (self.collection_name.lower(), "", "")
        for value, _ in self.explicit_values(instances, using):
            id = self.parsed(value, using)
            if id and family_of(id) == own:
                found[value] = id.number
        return found

    def check_jump(self, ids: dict[str, int], using: str) -> None:
        highest, name = max(ids, key=lambda id: ids[id]), self.collection_name
        if ids[highest] > settings.MAX_FLOOR_JUMP:
            last = gapless.last_gapless_number(name, using)
            explicit_ids.refuse_jump(last, ids[highest], highest, name)

    def raise_over(self, ids: dict[str, int], using: str) -> None:
        gapless.seed_gapless_number(self.collection_name, max(ids.values()), using)


@contextmanager
def assigning(
    field: AssignsIds, instances: Instances, using: str, beside: Iterable[int]
) -> Iterator[None]:
    """Give gapless ids to instances whose rows the block inserts.

    An error in the block takes the ids back. The numbers are higher than the explicit
    ones ``beside`` them.
    """
    minimum = max(beside, default=0)
    if not instances and not minimum:
        yield
        return
    instances, connection = distinct(instances), connections[using]
    before = Before(field, instances)
    for instance in instances:
        note = field.note_of(instance)
        if note is not None:  # taken back
            setattr(instance, field.attname, note.before)
    # Inside a transaction: before the savepoint, whose rollback this block sees.
    mark = state_of(connection).mark()
    by_itself = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=using):
            if by_itself:
                mark = state_of(connection).mark()
            if minimum:
                gapless.seed_gapless_number(field.collection_name, minimum, using)
            if instances:
                _assign(field, instances, using, mark)
            yield
    except BaseException:
        if mark is None or mark.outcome is not Outcome.COMMITTED:
            before.restore()
        raise  # if it is committed, another hook failed


def _assign(
    field: AssignsIds, instances: list[models.Model], using: str, mark: Mark | None
) -> None:
    """Give gapless ids in a transaction, with its mark if there is one."""
    ends = [field.end_of(instance) for instance in instances]
    collection = field.collection_name
    format = IdFormat.of(collection, check_separator(settings.SEPARATOR))
    numbers = gapless.next_gapless_numbers(collection, len(instances), using)
    for instance, number, end in zip(instances, numbers, ends, strict=True):
        before, id = field.value_of(instance), f"{format.text(number)}{end}"
        note = Note(using, mark, is_gapless=True, before=before)
        field.assign([instance], [id], using, [note])
