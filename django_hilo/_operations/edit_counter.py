"""Start, raise, lower or delete a counter for a user.

The admin and the REST endpoints share these rules. Each change runs under the lock of
reservations, so that none is lost, and sends `counter_changed` with the user. It
commits at once, even inside a caller's transaction, except on SQLite.
"""

from typing import Any

from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from django_hilo._allocation import memory
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import fields_of, series_fields_of
from django_hilo._operations.highest_numbers import Highest, highest_numbers
from django_hilo._operations.used_counters import check_used
from django_hilo.counters import floor
from django_hilo.counters.own import OwnSource
from django_hilo.counters.reservation import change_counter
from django_hilo.exceptions import CounterNotLowered
from django_hilo.identifiers import (
    IdFormat,
    check_counter_name,
    check_node_tag,
    check_number,
    is_counter_name,
)
from django_hilo.models import HiLoDocument
from django_hilo.signals import Change, send_counter_changed


def database_of(document: HiLoDocument) -> str:
    """Return the alias that a counter was loaded from."""
    using = document._state.db
    assert using is not None, f"{document} was not loaded from a database."
    return using


def counter_of(document: HiLoDocument) -> Counter:
    """Return the counter that takes its numbers from a stored counter."""
    using, fields = database_of(document), fields_of(document.collection)
    field = fields[0] if fields else None
    if is_counter_name(document.collection):
        # How a series writes its numbers, its rows know.
        field = next(iter(series_fields_of(document.collection)), None)
        own = OwnSource(document.collection, document.node_tag)
        return Counter(document.collection, using, own, field, format=IdFormat(""))
    if field is not None and field.is_integer:
        return resolve(field, using)
    collection = field.collection_name if field else document.collection
    width = getattr(field, "width", None) or 0
    source = OwnSource(collection, document.node_tag)
    return Counter(collection, using, source, field, width)


def id_at(document: HiLoDocument, number: int) -> str:
    """Return the id that a number of a counter would give now, without an anchor."""
    counter = counter_of(document)
    if counter.is_integer:
        return str(number)
    return counter.next_format().text(number)


def state_of(document: HiLoDocument) -> str:
    """Return a mark that differs after each change of the counter, and is safe to show.

    A form that asks for a confirmation carries the mark of the counter that it showed.
    """
    salt = "django_hilo._operations.edit_counter"
    return salted_hmac(salt, document.ticket, algorithm="sha256").hexdigest()


def create_counter(
    collection: str, node_tag: str, number: int, *, using: str, user: Any
) -> HiLoDocument:
    """Start a counter at Max ``number`` (0 to 2^63-1); its first range starts over it.

    One that exists is only raised. Raises `InvalidDocumentId`, and as `raise_max`.
    """
    row = HiLoDocument(
        collection=check_counter_name(collection), node_tag=check_node_tag(node_tag)
    )
    row._state.db = using
    return _raise(row, number, user, Change.CREATED)


def raise_max(document: HiLoDocument, number: int, *, user: Any) -> HiLoDocument:
    """Raise Max of a counter to ``number`` (up to 2^63-1), and return the new row.

    ``document.max`` is then what was found under the lock. Raises `CounterNotLowered`
    where that is over ``number``, and `CounterNotUsed` if no id comes from the counter.
    """
    return _raise(document, number, user, Change.RAISED)


def raise_over(
    document: HiLoDocument, number: int, *, user: Any
) -> HiLoDocument | None:
    """Raise Max as `raise_max` to the highest number in the tables, if it is lower.

    Returns None if it is not. The floor rises even then: after a restore the counter
    has the ticket of a range whose return must not lower Max under that number.
    """
    if number > document.max:
        return raise_max(document, number, user=user)
    if number:
        using, tag = database_of(document), document.node_tag
        floor.raise_floor(document.collection, number, using, node_tag=tag)
    return None


def _raise(
    document: HiLoDocument, number: int, user: Any, change: Change
) -> HiLoDocument:
    check_number(number, 0, "Max")
    check_used(document, number)
    before = 0

    def lift(row: HiLoDocument, prefix: str) -> dict[str, Any]:
        nonlocal before
        before = row.max
        if number < before:
            known = {"counter": row.id, "max": before, "number": number}
            raise CounterNotLowered(
                _(
                    "Max of %(counter)r is now %(max)s and cannot be lowered to "
                    "%(number)s: the numbers from %(next)s on may be in use."
                )
                % {**known, "next": number + 1}
            )
        return {"max": number} if number > before or not row.ticket else {}

    written = _change(document, lift)
    document.max = before
    if number > before or change is Change.CREATED:
        old = None if change is Change.CREATED else before
        using = database_of(document)
        send_counter_changed(written, using, change, old, number, user)
    return written


def lower_max(
    document: HiLoDocument, number: int, *, state: str, user: Any
) -> HiLoDocument:
    """Lower Max of a counter, and its floor with it, and return the new row.

    The user has confirmed that every process which draws from the counter is stopped;
    this process forgets its own ranges. ``state`` is the `state_of` that was confirmed.
    Raises `CounterNotLowered` while rows with higher numbers exist, or if the counter
    was changed since, which shows that some process still draws from it.
    """
    check_number(number, 0, "Max")
    check_unused(document, number)

    def lower(row: HiLoDocument) -> dict[str, Any]:
        floor = min(row.floor, number)
        return {"max": number, "floor": floor, "low": number + 1, "size": 0}

    written = _lower(document, lower, state)
    using, change = database_of(document), Change.LOWERED
    send_counter_changed(document, using, change, document.max, number, user)
    return written


def delete_counter(document: HiLoDocument, *, state: str, user: Any) -> None:
    """Delete a counter, under the conditions of `lower_max` to 0."""
    check_unused(document, 0)
    _lower(document, lambda row: None, state)
    using, change = database_of(document), Change.DELETED
    send_counter_changed(document, using, change, document.max, None, user)


def _lower(document: HiLoDocument, change: Any, state: str) -> HiLoDocument:
    def change_confirmed(row: HiLoDocument, prefix: str) -> Any:
        _check_state(row, state)
        return change(row)

    written = _change(document, change_confirmed)
    memory.current().forget_one(counter_of(document).key)
    return written


def tables_of(document: HiLoDocument, up_to: int = 0) -> list[Highest]:
    """Look up the highest numbers of a counter, as `highest_numbers`."""
    using = database_of(document)
    return highest_numbers(document.collection, document.node_tag, using, up_to)


def check_unused(document: HiLoDocument, number: int) -> list[Highest]:
    """Return the highest numbers in all tables, none of which is over ``number``.

    Raises `CounterNotLowered` while a row has a higher number of the counter.
    """
    looked_at = tables_of(document)
    for table in looked_at:
        known = table._asdict() | {"counter": document.id, "most": number}
        if table.error:
            raise CounterNotLowered(
                _(
                    "%(model)s on %(using)r could not be searched for numbers above "
                    "%(most)s: %(error)s. Fix that first."
                )
                % known
            )
        if table.number > number:
            raise CounterNotLowered(
                _(
                    "%(model)s on %(using)r has a row with the id %(id)r: Max of "
                    "%(counter)r cannot be lower than %(number)s while it exists."
                )
                % known
            )
    return looked_at


def _check_state(row: HiLoDocument, state: str) -> None:
    if not constant_time_compare(state, state_of(row)):
        raise CounterNotLowered(
            _(
                "The counter %(counter)r was changed in the meantime: Max is now "
                "%(max)s. Stop every process that uses it, then try again."
            )
            % {"counter": row.id, "max": row.max}
        )


def _change(document: HiLoDocument, change: Any) -> HiLoDocument:
    using = database_of(document)
    row = change_counter(document.collection, document.node_tag, using, change)[0]
    row._state.db = using  # it may have come over this process's own connection
    return row
