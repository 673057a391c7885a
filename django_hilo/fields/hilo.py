"""The text id of a HiLo counter: `HiLoField`."""

import operator
from collections.abc import Callable
from typing import Any, Literal, overload

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from django_hilo._allocation.allocate import allocate
from django_hilo._allocation.target import CounterField, Target, ids_of
from django_hilo.conf import settings
from django_hilo.counters.gapless import seed_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.fields._anchors import Anchor, anchor_of
from django_hilo.fields._assigns_ids import NOTHING, Block, marked
from django_hilo.fields._notes import Instances, distinct
from django_hilo.fields._text_ids import Got_co, IdField, Set_contra, Text
from django_hilo.fields.gapless import assigning
from django_hilo.identifiers import (
    MAX_WIDTH,
    anchor_in,
    family_of,
    parse,
    parse_alike,
    parse_or_none,
)

# Returns the id to store, from an instance and the id that its counter gave.
Convention = Callable[[models.Model, str], str]

# How the id ends that asks for a gapless one.
_GAPLESS = "|"


class HiLoField(IdField[Set_contra, Got_co], CounterField):
    """A text id such as ``orders/33-A``, given when the object is first saved.

    - ``collection`` names the counter; the default is the plural of the model's name
      by RavenDB's convention.
    - ``anchor`` is the path of a relation or field (``"order__customer"``), or an
      importable function of the instance. Its id or text follows a ``$`` in the id.
    - ``convention(instance, document_id)`` is an importable function that returns the
      id to store (RavenDB's RegisterAsyncIdConvention).
    - ``width`` pads numbers with zeros to 1 to 19 digits; 19 sorts texts as numbers.
    - ``capacity`` and ``max_capacity`` bound the size of ranges.
    - ``server_ids`` accepts RavenDB's requests for ids: an object saved with the id
      ``orders|`` gets the next gapless id, with ``orders/`` one of 19 digits.
    - ``any_id`` accepts explicit ids that are any text, as a ``convention`` does.
      Without them `full_clean()` refuses what is no id of the collection, and saving it
      warns once a process.
    - ``max_length`` is 64 by default, and 128 with an anchor.
    """

    own_options = {
        **IdField.own_options,
        **dict.fromkeys(("anchor", "convention", "width", "capacity", "max_capacity")),
        "server_ids": False,
    }
    non_db_attrs = (*models.CharField.non_db_attrs, *own_options)

    @overload
    def __init__(
        self: "HiLoField[Text, str]",
        collection: str | None = ...,
        anchor: Anchor | None = ...,
        convention: Convention | None = ...,
        width: int | None = ...,
        capacity: int | None = ...,
        max_capacity: int | None = ...,
        server_ids: bool = ...,
        any_id: bool = ...,
        *,
        null: Literal[False] = ...,
        **kwargs: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: "HiLoField[Text, str | None]",
        collection: str | None = ...,
        anchor: Anchor | None = ...,
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
        any_id: bool = False,
        **kwargs: Any,
    ) -> None:
        self.collection, self.anchor, self.convention = collection, anchor, convention
        self.width, self.server_ids = width, server_ids
        self.capacity, self.max_capacity = capacity, max_capacity
        kwargs.setdefault("max_length", 64 if anchor is None else 128)
        super().__init__(any_id, **kwargs)

    def takes(self, value: Any) -> bool:
        is_request = self._is_valid_request(value)
        return is_request or self.convention is not None or super().takes(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if add and _is_request(value) and self._is_valid_request(value):
            raise HiLoError(
                f"{value!r} requests an id, which only save() of a new object and "
                f"bulk_create() of a HiLoManager provide."
            )
        return value

    def needs_gapless(self, instance: models.Model) -> bool:
        return self._asks(instance, _GAPLESS) or self.was_taken_back(instance)

    def inserting(self, instances: Instances, using: str) -> Block:
        self.assign_missing(instances, using)
        if not self.server_ids:
            return NOTHING
        asking = [each for each in instances if self.needs_gapless(each)]
        beside = _untagged(self.explicit_ids(instances, using)) if asking else []
        return assigning(self, asking, using, beside)

    def assign_missing(self, instances: Instances, using: str) -> None:
        """Give ids to the instances that have none, with one reservation at most.

        Instances that ask for a server-side id get one; `inserting` gives gapless ids.
        """
        missing, noted = self.sort_out(instances)
        asking: list[models.Model] = []
        if noted:
            self.make_sure(noted, using)
        if len(missing) < len(instances):
            asking = [each for each in instances if self._asks(each)]
            asking = distinct(each for each in asking if not self.needs_gapless(each))
        if missing:
            self.give(missing, using)
        if asking:
            ends = self._ends(asking, MAX_WIDTH)
            wide = self.target(using)._replace(width=MAX_WIDTH)
            slices = allocate(wide, len(asking))
            ids = list(map(operator.add, ids_of(wide, slices), ends))
            self.assign(asking, ids, using, marked(slices))

    def give(self, instances: list[models.Model], using: str) -> None:
        ends = [] if self.anchor is None else self._ends(instances, self.width or 1)
        ids, marks = self.next_ids(len(instances), using)
        if ends:
            ids = list(map(operator.add, ids, ends))
        if self.convention is None:
            self.assign(instances, ids, using, marks)
            return
        # One at a time: the next call may look at the ids before it.
        for place, instance in enumerate(instances):
            made = self._by_convention(self.convention, instance, ids[place])
            self.assign([instance], [made], using, marks[place : place + 1])

    def _by_convention(
        self, convention: Convention, instance: models.Model, document_id: str
    ) -> str:
        value: Any = convention(instance, document_id)
        fault = None
        if not isinstance(value, str) or not value or "\x00" in value:
            fault = "it must be a string of at least one character"
        elif value.startswith("/") or _is_request(value):
            fault = "it must not start with '/' or end in '|' or a separator"
        else:
            made, given = parse_or_none(value), parse(document_id)
            is_other = made and made.number != given.number
            if made and is_other and family_of(made) == family_of(given):
                fault = (
                    f"the counter will give the number {made.number} to another "
                    f"object; keep {given.number}, or use a pattern other than {given}"
                )
        if fault is not None:
            raise HiLoError(f"The convention of {self} returned {value!r}: {fault}.")
        return value  # type: ignore[no-any-return]

    def _ends(self, instances: Instances, digits: int) -> list[str]:
        """Return what follows the numbers; raises `HiLoError` if it is too long."""
        ends = [self.end_of(each) for each in instances]
        longest = max(ends, key=len)
        collection = self.collection_name
        least = len(collection) + 1 + digits + len(longest)
        if self.convention is None and self.max_length and least > self.max_length:
            raise HiLoError(
                f"An id of {collection!r} that ends in {longest!r} has at least "
                f"{least} characters, but {self} allows {self.max_length}. Raise "
                f"max_length and migrate."
            )
        return ends

    def end_of(self, instance: models.Model) -> str:
        return "" if self.anchor is None else "$" + anchor_of(instance, self.anchor)

    def _asks(self, instance: models.Model, end: str = "") -> bool:
        """Whether an instance's id asks for another one; raises ValidationError."""
        value = self.value_of(instance)
        asks = instance._state.adding and self._is_valid_request(value)
        return asks and value.endswith(end)

    def _is_valid_request(self, value: Any) -> bool:
        """Whether a value asks for an id; raises ValidationError if it may not."""
        if not _is_request(value):
            return False
        if not self.server_ids:
            refusal = _(
                "The id “%(id)s” ends in “%(end)s”, which requests an id, but this "
                "field has server_ids=False: set server_ids=True, or omit the id."
            )
        elif value[:-1].lower() != self.collection_name.lower():
            refusal = _(
                "The id “%(id)s” requests an id of a collection other than “%(own)s”."
            )
        else:
            return True
        params = {"id": value, "end": value[-1], "own": self.collection_name}
        raise ValidationError(refusal, code="server_ids", params=params)

    def number_in(self, value: Any, target: Target, using: str) -> int | None:
        id = self.parsed(value, using)
        if id is None or id.collection.lower() != target.collection.lower():
            return None
        return id.number if id.node_tag in ("", target.node_tag) else None

    def record(self, ids: dict[str, int], using: str) -> None:
        super().record(ids, using)
        untagged = _untagged(ids) if self.server_ids else []
        if untagged:
            seed_gapless_number(self.collection_name, max(untagged), using)


def _is_request(value: Any) -> bool:
    """Whether a value ends as an id that asks for another; an anchor may end so."""
    return (
        isinstance(value, str)
        and not value[-1:].isalnum()  # most ids: no setting is read for them
        and value.endswith((_GAPLESS, settings.SEPARATOR))
        and anchor_in(value) is None
    )


def _untagged(ids: dict[str, int]) -> list[int]:
    """Return the numbers of ids without a node tag, as gapless ids are."""
    parsed = {number: parse_alike(id) for id, number in ids.items()}
    return [number for number, id in parsed.items() if id and not id.node_tag]
