"""Gapless ids of instances: number and row belong to the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation.transaction import TransactionState
from django_hilo.conf import settings
from django_hilo.counters.gapless import next_gapless_numbers, seed_gapless_number
from django_hilo.fields.base import AssignsIds
from django_hilo.fields.instance_state import (
    distinct,
    forget_rolled_back,
    note_taken,
    value_of,
)
from django_hilo.identifiers import check_separator, id_start


class TakingTransaction:
    """Know whether the transaction that took gapless numbers was rolled back."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self.was_committed = self._rolled_back = False
        detector = TransactionState.of(connection).detector(self._commit)
        # Django keeps the hook, and so the detector, until a rollback drops it, or all
        # hooks have run: while others run it is alive, though no longer in the list.
        self._detector = ref(detector, self._gone)

    def was_rolled_back(self) -> bool:
        """Whether it certainly was."""
        detector = self._detector()
        broken = detector is not None and detector.is_invalidated
        return not self.was_committed and (self._rolled_back or broken)

    def _commit(self) -> None:
        self.was_committed = True

    def _gone(self, detector: object) -> None:
        # Hooks run in autocommit mode after a commit; one that raises drops the others.
        self._rolled_back = not self._connection.autocommit

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or another process, knows nothing about it: it gets None.
        return type(None), ()


@contextmanager
def assigning(
    field: AssignsIds,
    instances: Iterable[models.Model],
    using: str,
    above: int = 0,
) -> Iterator[None]:
    """Give gapless ids to instances whose rows the block inserts.

    An error in the block takes the ids back. The numbers are higher than ``above``,
    the highest explicit number beside them.
    """
    instances = distinct(instances)
    if not instances and not above:
        yield
        return
    for instance in instances:
        forget_rolled_back(instance, field)
    before = [(each, _snapshot(field, each)) for each in instances]
    connection = connections[using]
    # Inside a transaction: before the savepoint, whose rollback this block sees.
    taking = TakingTransaction(connection) if connection.in_atomic_block else None
    by_itself = taking is None and connection.get_autocommit()
    try:
        with transaction.atomic(using=using):
            if by_itself:
                taking = TakingTransaction(connection)  # its hook is the first to run
            keep_clear_of(field, [above] if above else [], using)
            if instances:
                assign(field, instances, using, taking)
            yield
    except BaseException:
        if taking is not None and taking.was_committed:
            raise  # another hook of the commit failed
        for instance, (values, state) in before:
            vars(instance).update(values)
            vars(instance._state).clear()
            vars(instance._state).update(state)
        raise


def assign(
    field: AssignsIds,
    instances: Sequence[models.Model],
    using: str,
    taking: TakingTransaction | None,
) -> None:
    """Give gapless ids inside a transaction, which is ``taking`` if it is known."""
    ends = [field.end_of(instance) for instance in instances]
    collection = field.collection_name
    start = id_start(collection, check_separator(settings.SEPARATOR), "")
    numbers = next_gapless_numbers(collection, len(instances), using)
    for instance, number, end in zip(instances, numbers, ends, strict=True):
        before = value_of(instance, field)
        field.assign([instance], [f"{start}{number}{end}"], using)
        note_taken(instance, field, before, taking)


def _snapshot(
    field: AssignsIds, instance: models.Model
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ids of an instance, and its state."""
    fields = instance._meta.concrete_fields
    names = [each.attname for each in fields if each.primary_key or each is field]
    known = vars(instance)
    values = {name: known[name] for name in names if name in known}
    return values, dict(vars(instance._state))


def keep_clear_of(field: AssignsIds, numbers: Sequence[int], using: str) -> None:
    """Raise the gapless counter to the numbers of explicit ids."""
    if numbers:
        seed_gapless_number(field.collection_name, max(numbers), using)
