"""Gapless ids of instances: the number and the row belong to one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections, models, transaction

from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.gapless import next_gapless_numbers, seed_gapless_number
from django_hilo.identifiers import check_separator, id_start
from django_hilo.ledger import Ledger
from django_hilo.sharding.placement import is_sharded
from django_hilo.targets import home_of

if TYPE_CHECKING:
    from django_hilo.fields.base import IdField

_TAKEN = "hilo_taken"


class _Taking:
    """Gapless numbers that were taken in one transaction, and what became of them."""

    def __init__(self, using: str) -> None:
        self._committed = False
        self._bond = Ledger.of(connections[using]).bond(self._commit)

    def _commit(self) -> None:
        self._committed = True

    def was_rolled_back(self) -> bool:
        return not self._committed and not self._bond.holds()

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process or a deep copy nothing is known of the transaction.
        return _Committed, ()


class _Committed:
    """Stands for numbers of which nothing else is known."""

    def was_rolled_back(self) -> bool:
        return False


@contextmanager
def given(
    field: IdField,
    instances: Iterable[models.Model],
    using: str,
    end: Callable[[models.Model], str] = lambda instance: "",
    above: int = 0,
) -> Iterator[None]:
    """Give gapless ids for rows that are inserted in the block, or take them back.

    The numbers are over ``above``, that of an explicit id beside them.
    """
    distinct = list({id(each): each for each in instances}.values())
    if not distinct:
        yield
        return
    for instance in distinct:
        if was_rolled_back(field, instance):
            setattr(instance, field.attname, _taken(instance)[field.attname][1])
    before = [(each, each.__dict__.get(field.attname)) for each in distinct]
    try:
        with transaction.atomic(using=using):
            keep_clear_of(field, [above] if above else [], using)
            give(field, distinct, using, end)
            yield
    except BaseException:
        for instance, value in before:
            setattr(instance, field.attname, value)
        raise


def give(
    field: IdField,
    instances: Sequence[models.Model],
    using: str,
    end: Callable[[models.Model], str] = lambda instance: "",
) -> None:
    """Give gapless ids inside the caller's transaction; raises `HiLoError`."""
    if is_sharded(field.model):
        raise HiLoError(
            f"{field} gives no gapless ids: the rows of {field.model._meta.label} are "
            f"spread over shards, and each would count for itself."
        )
    ends = [end(instance) for instance in instances]
    collection = field.collection_name
    start = id_start(collection, check_separator(settings.SEPARATOR), "")
    numbers = next_gapless_numbers(collection, len(instances), using)
    taking = _Taking(using)
    for instance, number, last in zip(instances, numbers, ends, strict=True):
        before, name = instance.__dict__.get(field.attname), field.attname
        field.give(instance, f"{start}{number}{last}", home_of(using))
        entry = {name: (getattr(instance, name), before, taking)}
        vars(instance._state)[_TAKEN] = {**_taken(instance), **entry}


def was_rolled_back(field: IdField, instance: models.Model) -> bool:
    """Whether an instance has a gapless id that its rollback gave back."""
    value, _, taking = _taken(instance).get(field.attname, (None, None, _Committed()))
    unchanged = value is not None and instance.__dict__.get(field.attname) == value
    return unchanged and taking.was_rolled_back()


def _taken(instance: models.Model) -> dict[str, tuple[str, Any, Any]]:
    taken: dict[str, tuple[str, Any, Any]] = vars(instance._state).get(_TAKEN, {})
    return taken


def keep_clear_of(field: IdField, numbers: Sequence[int], using: str) -> None:
    """Let no coming gapless number be one of explicit ids inserted on ``using``."""
    if numbers:
        seed_gapless_number(field.collection_name, max(numbers), using)
