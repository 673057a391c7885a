"""Gapless ids, whose numbers and rows belong to the same transaction."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connections, models, transaction

from django_hilo._database.transaction import Mark, Outcome, state_of
from django_hilo.conf import settings
from django_hilo.counters import gapless
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._ids import Before, Note
from django_hilo.identifiers import IdFormat, check_separator


@contextmanager
def giving_gapless(
    ids: AssignedIds,
    instances: Iterable[models.Model],
    using: str,
    beside: Iterable[int],
) -> Iterator[None]:
    """Give gapless ids to instances whose rows the block inserts.

    An error in the block takes the ids back. The numbers are higher than the explicit
    ones ``beside`` them.
    """
    minimum, missing = max(beside, default=0), distinct(instances)
    if not missing and not minimum:
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
            if minimum:
                collection = ids.field.collection_name
                gapless.seed_gapless_number(collection, minimum, using)
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
    ends = [ids.end_of(instance) for instance in instances]
    collection = ids.field.collection_name
    format = IdFormat.of(collection, check_separator(settings.SEPARATOR))
    numbers = gapless.next_gapless_numbers(collection, len(instances), using)
    for instance, number, end in zip(instances, numbers, ends, strict=True):
        before, value = ids.value_of(instance), f"{format.text(number)}{end}"
        note = Note(using, mark, is_gapless=True, before=before)
        ids.set_ids([instance], [value], using, [note])


def distinct(instances: Iterable[models.Model]) -> list[models.Model]:
    """Return the instances, each of them once."""
    # By identity: an instance without a key cannot be hashed.
    return list({id(each): each for each in instances}.values())
