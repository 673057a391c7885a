from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, overload

from django.core import checks
from django.db import models

from django_hilo import floors, generator
from django_hilo.anchors import Anchor, anchor_of
from django_hilo.exceptions import HiLoError
from django_hilo.fields import gapless_ids, server_ids
from django_hilo.fields.base import Got_co, IdField, Set_contra, parse_or_none
from django_hilo.fields.conventions import apply_convention
from django_hilo.fields.saving import NOTHING
from django_hilo.freshness import (
    explicit_on,
    forget_all_fresh,
    fresh_on,
    is_watched,
    known_value,
    settle,
    without_value,
)
from django_hilo.identifiers import MAX_WIDTH, DocumentId
from django_hilo.targets import CounterField, resolve

if TYPE_CHECKING:
    from django_hilo.fields.base import Text

# What makes an id of an instance and the id that its counter gave.
Convention = Callable[[models.Model, str], str]


class HiLoField(IdField[Set_contra, Got_co], CounterField):
    """A text id such as ``orders/33-A``, given when the object is first saved.

    ``collection`` is the family of ids that share a counter (default: the plural of the
    model's name by RavenDB's convention). ``anchor`` names a relation or field, through
    relations too (``"order__customer"``), or is an importable callable of the instance;
    its id or text follows a ``$``. ``convention(instance, document_id)`` is an
    importable callable that gets the generated id and returns the one to store
    (RavenDB's RegisterAsyncIdConvention). ``width`` writes numbers with leading zeros,
    1 to 19 digits; with 19 the order of texts is that of numbers. ``capacity`` and
    ``max_capacity`` bound the ranges. With ``server_ids`` an object that is saved with
    the id ``orders|`` gets the next gapless id, with ``orders/`` one of 19 digits
    (RavenDB's identities and server-side ids). ``max_length`` is 64, with an anchor
    128.
    """

    own_options = (
        *IdField.own_options,
        "anchor",
        "convention",
        "width",
        "capacity",
        "max_capacity",
        "server_ids",
    )
    non_db_attrs = (*models.CharField.non_db_attrs, *own_options)

    @overload
    def __init__(
        self: HiLoField[Text, str],
        collection: str | None = ...,
        anchor: Anchor | None = ...,
        convention: Convention | None = ...,
        width: int | None = ...,
        capacity: int | None = ...,
        max_capacity: int | None = ...,
        server_ids: bool = ...,
        *,
        null: Literal[False] = ...,
        **kwargs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: HiLoField[Text, str | None],
        collection: str | None = ...,
        anchor: Anchor | None = ...,
        convention: Convention | None = ...,
        width: int | None = ...,
        capacity: int | None = ...,
        max_capacity: int | None = ...,
        server_ids: bool = ...,
        *,
        null: bool,
        **kwargs: Any,
    ) -> None: ...
    def __init__(
        self,
        collection: str | None = None,
        anchor: Anchor | None = None,
        convention: Convention | None = None,
        width: int | None = None,
        capacity: int | None = None,
        max_capacity: int | None = None,
        server_ids: bool = False,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        self.anchor = anchor
        self.convention = convention
        self.width = width
        self.capacity = capacity
        self.max_capacity = max_capacity
        self.server_ids = server_ids
        kwargs.setdefault("max_length", 64 if anchor is None else 128)
        super().__init__(**kwargs)

    @property
    def gives_gapless(self) -> bool:
        return self.server_ids

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        # Late, as in django_hilo.checks.
        from django_hilo.fields.checks import check_hilo_field

        return [*super().check(**kwargs), *check_hilo_field(self)]

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        self._check_request(value)
        super().validate(value, model_instance)

    def needs_id(self, instance: models.Model) -> bool:
        return (
            self.is_missing(instance)
            or self._asks(instance)
            or self.was_rolled_back(instance)
        )

    def needs_gapless(self, instance: models.Model) -> bool:
        asks = self._asks(instance)
        return (
            asks and server_ids.asks_for_gapless(self._value(instance))
        ) or self.was_rolled_back(instance)

    def give_at_once(self, instance: models.Model, using: str) -> bool:
        value = getattr(instance, self.attname)
        if (
            (value is not None and value != "")
            or not self.primary_key
            or self.anchor is not None
            or self.convention is not None
            or self.server_ids
        ):
            return False
        self.give_one(instance, self._next_id(using), using)
        return True

    def inserting(
        self, instances: Sequence[models.Model], using: str
    ) -> AbstractContextManager[None]:
        self.assign_missing(instances, using)
        return self._inserting_gapless(instances, using) if self.server_ids else NOTHING

    @contextmanager
    def _inserting_gapless(
        self, instances: Sequence[models.Model], using: str
    ) -> Iterator[None]:
        asking = [each for each in instances if self.needs_gapless(each)]
        # An id that was rolled back is no explicit one: its number comes again.
        others = [each for each in instances if not self.was_rolled_back(each)]
        beside = self._explicit(others, using) if asking else []
        above = max((each.number for each in beside if not each.node_tag), default=0)
        with gapless_ids.given(self, asking, using, self._end, above):
            yield

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = getattr(model_instance, self.attname)
        # The short way of most rows; Django asks twice for each that is saved.
        if type(value) is str and value[-1:].isalnum() and is_watched(model_instance):
            return value
        value = super().pre_save(model_instance, add)
        if add and server_ids.is_request(value):
            server_ids.check_request(value, self)
            raise HiLoError(
                f"{value!r} asks for an id, which only a new object gets: by save(), "
                f"or by the bulk_create() of a HiLoManager."
            )
        return value

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give ids to the instances that have none, for one reservation at most.

        Also to those that ask for a server-side id; a gapless one is left to the save.
        """
        instances = list(instances)
        missing = without_value(instances, self)
        asking: dict[int, models.Model] = {}
        if len(missing) < len(instances):
            for instance in instances:
                value = known_value(instance, self)
                if (
                    server_ids.is_request(value)
                    and self._asks(instance)
                    and not server_ids.asks_for_gapless(value)
                ):
                    asking[id(instance)] = instance
        if missing:
            self._give_next(missing, using)
        if asking:
            self._give_padded(list(asking.values()), using)

    def _give_next(self, instances: Sequence[models.Model], using: str) -> None:
        ends = self._ends(instances, self.width or 1)
        if len(instances) == 1:
            ids = [self._next_id(using)]
        else:
            ids = generator.next_ids(self, len(instances), using)
        if self.anchor is not None:
            ids = list(map(operator.add, ids, ends))
        if self.convention is None:
            self.give(instances, ids, using)
        else:
            # One may look at the ids of those before it.
            for instance, id in zip(instances, ids, strict=True):
                self.give_one(instance, apply_convention(self, instance, id), using)

    def _next_id(self, using: str) -> str:
        # Of a key by its model, the way to whose ids is remembered.
        return generator.next_id(self.model if self.primary_key else self, using)

    def _give_padded(self, instances: Sequence[models.Model], using: str) -> None:
        ends = self._ends(instances, MAX_WIDTH)
        wide = resolve(self, using)._replace(width=MAX_WIDTH)
        ids = generator.next_ids(wide, len(instances))
        self.give(instances, list(map(operator.add, ids, ends)), using)

    def _ends(self, instances: Sequence[models.Model], digits: int) -> list[str]:
        """Return the anchors, all of them before the first number is spent.

        Raises `HiLoError` for one that no number would leave enough room.
        """
        if self.anchor is None:
            ends, longest = [""] * len(instances), ""
        else:
            ends = [self._end(each) for each in instances]
            longest = max(ends, key=len)
        collection = self.collection_name
        least = len(collection) + 1 + digits + len(longest)
        if self.convention is None and self.max_length and least > self.max_length:
            raise HiLoError(
                f"An id of {collection!r} that ends in {longest!r} has at least "
                f"{least} characters, {self} takes {self.max_length}. Raise max_length "
                f"and migrate."
            )
        return ends

    def _end(self, instance: models.Model) -> str:
        return "" if self.anchor is None else "$" + anchor_of(instance, self.anchor)

    def _value(self, instance: models.Model) -> Any:
        return known_value(instance, self)

    def _asks(self, instance: models.Model) -> bool:
        """Whether an instance's id asks for another one; raises ValidationError."""
        return instance._state.adding and self._check_request(self._value(instance))

    def _check_request(self, value: Any) -> bool:
        if not server_ids.is_request(value):
            return False
        server_ids.check_request(value, self)
        return True

    def check_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Raise `HiLoError` where the number of an explicit id is absurdly high."""
        found = self._explicit(instances, using)
        if found:
            highest = max(found, key=lambda document_id: document_id.number)
            floors.check_jump(resolve(self, using), highest.number, str(highest))

    def expect_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        found = self._explicit(instances, using)
        if found:
            numbers = [document_id.number for document_id in found]
            floors.expect(resolve(self, using), numbers)

    def observe_inserted(self, instances: Sequence[models.Model], using: str) -> None:
        """Keep coming ranges over the numbers of explicit ids that were inserted."""
        others = settle(instances, self, using)
        found = self._explicit(others, using)
        if found:
            numbers = [document_id.number for document_id in found]
            floors.observe(resolve(self, using), numbers, using)
        if self.server_ids:
            untagged = [each.number for each in found if not each.node_tag]
            gapless_ids.keep_clear_of(self, untagged, using)
        forget_all_fresh(others, self)

    def _explicit(
        self, instances: Iterable[models.Model], using: str
    ) -> list[DocumentId]:
        """Return the ids that are not ours but of the own counter."""
        found: list[DocumentId] = []
        for instance in explicit_on(instances, self, using):
            value = self._value(instance)
            if not isinstance(value, str):
                continue
            given_on = fresh_on(instance, self)
            target = resolve(self, using)
            if given_on is None or resolve(self, given_on).using != target.using:
                document_id = parse_or_none(value)
                if (
                    document_id is not None
                    and document_id.collection.lower() == target.collection.lower()
                    and document_id.node_tag in ("", target.node_tag)
                ):
                    found.append(document_id)
        return found
