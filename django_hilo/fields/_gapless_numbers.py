"""Gapless ids, whose numbers and rows belong to the same transaction."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connections, models, transaction

from django_hilo._database.transaction import Mark, Outcome, state_of
from django_hilo.counters import gapless
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._ids import Before, Explicit, Note


@contextmanager
def giving_gapless(
    ids: AssignedIds,
    instances: Iterable[models.Model],
    using: str,
    beside: Explicit,
) -> Iterator[None]:
    """Give gapless ids to instances whose rows the block inserts.

    An error in the block takes the ids back. The numbers are higher than those of the
    explicit ids ``beside`` them.
    """
    missing = distinct(instances)
    if not missing and not beside:
        yield
        return
    connection, before = connections[using], Before(ids, missing)
    for instance in missing:
        note = ids.note_of(instance)
        if note is not None:  # taken back
            setattr(instance, ids.attname, note.before)
    # Inside a transaction: before the savepoint, whose rollback this block sees.
    mark = state_of(connection).mark()
    by_itself = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=using):
            if by_itself:
                mark = state_of(connection).mark()
            if beside:
                ids.seed_gapless(beside, using)
            if missing:
                give_gapless(ids, missing, using, mark)
            yield
    except BaseException:
        if mark is None or mark.outcome is not Outcome.COMMITTED:
            before.restore()
        raise  # if it is committed, another hook failed


def give_gapless(
    ids: AssignedIds, instances: list[models.Model], using: str, mark: Mark | None
) -> None:
    """Give gapless ids in a transaction, with its mark if there is one."""
    ends = {id(instance): ids.end_of(instance) for instance in instances}
    parts = list(ids.gapless_parts(instances, using))
    counts = {name: len(mine) for name, _, mine in parts}
    numbers = gapless.next_of_each(counts, using)
    for name, format, mine in parts:
        for instance, number in zip(mine, numbers[name], strict=True):
            before = ids.value_of(instance)
            value = f"{format.text(number)}{ends[id(instance)]}"
            note = Note(using, mark, is_gapless=True, before=before)
            ids.set_ids([instance], [value], using, [note])


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(each): each for each in instances}.values())
