from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, overload

from django.core import checks
from django.db import connections, models

from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.fields import gapless_ids
from django_hilo.fields.base import Got_co, IdField, Set_contra, parse_or_none
from django_hilo.fields.hilo import HiLoField
from django_hilo.freshness import forget_all_fresh, is_fresh, known_value
from django_hilo.gapless import last_gapless_number

if TYPE_CHECKING:
    from django_hilo.fields.base import Text


class GaplessIdField(IdField[Set_contra, Got_co]):
    """A text id such as ``invoices/1``, the next of which is ``invoices/2``, no gaps.

    The number is taken in the transaction that inserts the row, so a rollback gives it
    back, and other writers of the collection wait for the commit (RavenDB's
    identities). ``collection`` as in `HiLoField`; ``max_length`` is 64.
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

    @property
    def gives_gapless(self) -> bool:
        return True

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        # Late, as in django_hilo.checks.
        from django_hilo.fields.checks import check_gapless_field

        return [*super().check(**kwargs), *check_gapless_field(self)]

    @contextmanager
    def inserting(
        self, instances: Sequence[models.Model], using: str
    ) -> Iterator[None]:
        missing = self._missing(instances)
        _give_others_first(instances, using)
        new = [each for each in instances if each._state.adding]
        above = max(self._explicit(new), default=0)
        with gapless_ids.given(self, missing, using, above=above):
            yield

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give ids to the instances that have none, inside the caller's transaction.

        Raises `HiLoError` outside of one: the number of a row that is never inserted
        would be a gap.
        """
        missing = self._missing(instances)
        if not missing:
            return
        if not connections[using].in_atomic_block:
            raise HiLoError(
                f"{self} gives ids in the transaction that inserts the rows: begin one "
                f"(transaction.atomic()), or let save() or the bulk_create() of a "
                f"HiLoManager do it."
            )
        gapless_ids.give(self, missing, using)

    def _written_to(self, instance: models.Model) -> str:
        if self.needs_id(instance):
            # What becomes of the row, ignored on a conflict perhaps, is not seen.
            raise HiLoError(
                f"{self} gives no ids in the bulk_create() of a manager that is no "
                f"HiLoManager: use one, or save()."
            )
        return super()._written_to(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        return self.needs_id(instance)

    def _missing(self, instances: Iterable[models.Model]) -> list[models.Model]:
        missing = {id(each): each for each in instances if self.needs_id(each)}
        return list(missing.values())

    def needs_id(self, instance: models.Model) -> bool:
        return self.is_missing(instance) or self.was_rolled_back(instance)

    def check_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Raise `HiLoError` where the number of an explicit id is absurdly high."""
        jump = settings.MAX_FLOOR_JUMP
        highest = max(self._explicit(instances), default=0)
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

    def observe_inserted(self, instances: Sequence[models.Model], using: str) -> None:
        """Let the next numbers be over those of explicit ids that were inserted."""
        gapless_ids.keep_clear_of(self, list(self._explicit(instances)), using)
        forget_all_fresh(instances, self)

    def _explicit(self, instances: Iterable[models.Model]) -> Iterator[int]:
        """Yield the numbers of ids that are not ours but of the own counter."""
        for instance in instances:
            value = known_value(instance, self)
            if (
                not isinstance(value, str)
                or is_fresh(instance, self)
                or self.was_rolled_back(instance)
            ):
                continue
            parts = parse_or_none(value)
            if (
                parts is not None
                and parts.collection.lower() == self.collection_name.lower()
                and not parts.node_tag
                and not parts.server_prefix
            ):
                yield parts.number


def _give_others_first(instances: Sequence[models.Model], using: str) -> None:
    """Give the HiLo ids while nobody waits for the gapless counter."""
    for field in instances[0]._meta.fields if instances else ():
        if isinstance(field, HiLoField):
            field.assign_missing(
                [each for each in instances if field.is_key or each._state.adding],
                using,
            )
