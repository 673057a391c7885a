"""The text id without gaps: `GaplessIdField`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, overload

from django.db import connections, models

from django_hilo._allocation.target import CounterField
from django_hilo.conf import settings
from django_hilo.counters.gapless import last_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.fields import gapless_ids
from django_hilo.fields.base import Got_co, Set_contra, id_fields
from django_hilo.fields.instance_state import (
    value_of,
    was_rolled_back,
    with_explicit_id,
)
from django_hilo.fields.text import IdField, parse_or_none

if TYPE_CHECKING:
    from django_hilo.fields.text import Text


class GaplessIdField(IdField[Set_contra, Got_co]):
    """A text id such as ``invoices/1``; the next one is ``invoices/2``, without a gap.

    The number is taken in the transaction that inserts the row: a rollback gives it
    back, and other writers of the collection wait for the commit (RavenDB's
    identities). ``collection`` is as in `HiLoField`; ``max_length`` is 64.
    """

    @overload
    def __init__(
        self: GaplessIdField[Text, str],
        collection: str | None = ...,
        *,
        null: Literal[False] = ...,
        **kwargs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: GaplessIdField[Text, str | None],
        collection: str | None = ...,
        *,
        null: bool,
        **kwargs: Any,
    ) -> None: ...
    def __init__(self, collection: str | None = None, **kwargs: Any) -> None:
        self.collection = collection
        kwargs.setdefault("max_length", 64)
        super().__init__(**kwargs)

    def is_missing(self, instance: models.Model) -> bool:
        return super().is_missing(instance) or was_rolled_back(instance, self)

    def needs_gapless(self, instance: models.Model) -> bool:
        return self.is_missing(instance)

    @contextmanager
    def inserting(
        self, instances: Sequence[models.Model], using: str
    ) -> Iterator[None]:
        missing = self.missing(instances)
        _assign_others_first(instances, using)
        new = [each for each in instances if each._state.adding]
        highest = max(self.explicit_ids(new, using).values(), default=0)
        with gapless_ids.assigning(self, missing, using, above=highest):
            yield

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give ids to the instances that have none, inside the caller's transaction.

        Raises `HiLoError` outside of a transaction: the number would be a gap if the
        row is never inserted.
        """
        missing = self.missing(instances)
        if not missing:
            return
        connection = connections[using]
        if not connection.in_atomic_block:
            raise HiLoError(
                f"{self} gives ids in the transaction that inserts the rows: begin one "
                f"(transaction.atomic()), or let save() or the bulk_create() of a "
                f"HiLoManager do it."
            )
        taking = gapless_ids.TakingTransaction(connection)
        gapless_ids.assign(self, missing, using, taking)

    def _alias_of_plain_bulk(self, instance: models.Model) -> str:
        if self.is_missing(instance):
            # It may ignore the row on a conflict without a trace.
            raise HiLoError(
                f"{self} gives no ids in the bulk_create() of a manager that is "
                f"not a HiLoManager: use one, or save()."
            )
        return super()._alias_of_plain_bulk(instance)

    def explicit_ids(
        self, instances: Iterable[models.Model], using: str
    ) -> dict[str, int]:
        found = {}
        for instance in with_explicit_id(instances, self, using):
            parts = parse_or_none(value_of(instance, self))
            if (
                parts is not None
                and parts.collection.lower() == self.collection_name.lower()
                and not parts.node_tag
                and not parts.server_prefix
                and not was_rolled_back(instance, self)
            ):
                found[str(parts)] = parts.number
        return found

    def check_jump(self, ids: dict[str, int], using: str) -> None:
        jump, highest = settings.MAX_FLOOR_JUMP, max(ids.values())
        if highest <= jump:
            return
        last = last_gapless_number(self.collection_name, using)
        if highest - last > jump:
            raise HiLoError(
                f"The number {highest} is {highest - last} over the last gapless "
                f"number of {self.collection_name!r} ({last}), and all numbers after "
                f"it would be higher still. If that is meant, raise "
                f"HILO['MAX_FLOOR_JUMP'] (now {jump})."
            )

    def reserve(self, ids: dict[str, int], using: str) -> None:
        """Do nothing: the numbers that `inserting` takes are higher."""

    def record(self, ids: dict[str, int], using: str) -> None:
        gapless_ids.keep_clear_of(self, list(ids.values()), using)


def _assign_others_first(instances: Sequence[models.Model], using: str) -> None:
    """Assign the ids of counters before the gapless counter is locked."""
    for field in id_fields(type(instances[0])) if instances else ():
        if isinstance(field, CounterField):
            new = [each for each in instances if field.is_key or each._state.adding]
            field.assign_missing(new, using)
