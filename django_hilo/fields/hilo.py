"""The text id of a HiLo counter: `HiLoField`."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from django_hilo._allocation.allocate import allocate
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.find import find
from django_hilo._allocation.registry import home_of, own_home_and_source
from django_hilo._database.identity import database_key
from django_hilo.counters.source import Source
from django_hilo.exceptions import HiLoError
from django_hilo.fields._anchors import Anchor, anchor_of
from django_hilo.fields._assigned_ids import AssignedIds, notes_of
from django_hilo.fields._conventions import GAPLESS, Convention, id_by, is_request
from django_hilo.fields._gapless_numbers import giving_gapless
from django_hilo.fields._ids import Before, Explicit, Instances, Save
from django_hilo.fields._in_series import InSeries, ids_by_series
from django_hilo.fields._text_ids import Got_co, IdField, Set_contra, VerboseName
from django_hilo.identifiers import MAX_WIDTH, parse_alike


class HiLoIds(AssignedIds):
    """The ids of a `HiLoField`: a number of its counter in a text, perhaps anchored."""

    def needs_gapless(self, instance: models.Model) -> bool:
        return self._asks(instance, GAPLESS) or self.was_taken_back(instance)

    def answer(
        self,
        others: list[models.Model],
        found: Explicit,
        using: str,
        save: Save | None,
    ) -> None:
        if not self.field.server_ids:
            return
        asking = [each for each in others if self._asks(each)]
        wide = [each for each in asking if not self.needs_gapless(each)]
        if wide:
            if found:
                self.avoid(found, using)
            if save is not None:
                save.given.append(Before(self, wide))
            self._give_wide(wide, using)
        gapless = [each for each in others if self.needs_gapless(each)]
        if save is not None:
            beside = _untagged(found) if gapless else {}
            save.blocks.append(giving_gapless(self, gapless, using, beside))

    def note_explicit(self, value: Any) -> None:
        if not self.field.is_valid_request(value):
            self.field.warn_of(value)

    def _give_wide(self, instances: list[models.Model], using: str) -> None:
        ends = self._ends(instances, MAX_WIDTH)
        wide = self.counter(using).changed(width=MAX_WIDTH)
        slices = allocate(wide, len(instances))
        ids = list(map(operator.add, wide.ids_of(slices), ends))
        self.set_ids(instances, ids, using, notes_of(slices, using))

    def give(self, instances: list[models.Model], using: str) -> None:
        field = self.field
        ends = [] if field.anchor is None else self._ends(instances, field.width or 1)
        ids, notes = self.take_ids(len(instances), using)
        if ends:
            ids = list(map(operator.add, ids, ends))
        if field.convention is None:
            self.set_ids(instances, ids, using, notes)
            return
        # One at a time: the next call may look at the ids before it.
        for instance, id, note in zip(instances, ids, notes):  # noqa: B905 - without end
            made, number = id_by(field.convention, instance, id, field)
            known = note and replace(note, number=number)
            self.set_ids([instance], [made], using, [known])

    def _ends(self, instances: Instances, digits: int) -> list[str]:
        """Return what follows the numbers; raises `HiLoError` if it is too long."""
        field, ends = self.field, [self.end_of(each) for each in instances]
        longest = max(ends, key=len)
        collection = field.collection_name
        least = len(collection) + 1 + digits + len(longest)
        if field.convention is None and field.max_length and least > field.max_length:
            raise HiLoError(
                f"An id of {collection!r} that ends in {longest!r} has at least "
                f"{least} characters, but {field} allows {field.max_length}. Raise "
                f"max_length and migrate."
            )
        return ends

    def end_of(self, instance: models.Model) -> str:
        anchor = self.field.anchor
        return "" if anchor is None else "$" + anchor_of(instance, anchor)

    def _asks(self, instance: models.Model, end: str = "") -> bool:
        """Whether an instance's id asks for another one; raises ValidationError."""
        value = self.value_of(instance)
        asks = instance._state.adding and self.field.is_valid_request(value)
        return bool(asks and value.endswith(end))

    def number_in(self, value: Any, using: str) -> int | None:
        id, own = self.field.parsed(value, using), self.field.collection_name
        if id is None or id.collection.lower() != own.lower():
            return None
        return id.number if id.node_tag in ("", self.counter(using).node_tag) else None

    def raise_over(self, ids: Explicit, using: str) -> None:
        super().raise_over(ids, using)
        untagged = _untagged(ids) if self.field.server_ids else {}
        if untagged:
            self.seed_gapless(untagged, using)


class HiLoSeriesIds(InSeries, HiLoIds):
    """The ids of a `HiLoField` with ``per``."""

    def give(self, instances: list[models.Model], using: str) -> None:
        for counter, mine in self.counters_of(instances, using):
            slices = allocate(counter, len(mine))
            ids = counter.ids_of(slices)
            self.set_ids(mine, ids, using, notes_of(slices, using))

    def shares_counter(self, alias: str, using: str) -> bool:
        return database_key(home_of(alias)) == database_key(home_of(using))

    def by_counter(
        self, ids: Explicit, using: str
    ) -> Iterable[tuple[Counter, dict[str, int]]]:
        groups = ids_by_series(ids).items()
        return [(find(series, using), mine) for series, mine in groups]

    def counters_of(
        self, instances: list[models.Model], using: str
    ) -> Iterable[tuple[Counter, list[models.Model]]]:
        for series, mine in self.by_series(instances).items():
            yield find(series, using), mine


class HiLoField(IdField[Set_contra, Got_co]):
    """A text id such as ``orders/33-A``, given when the object is first saved.

    - ``collection`` names the counter; the default is the plural of the model's name
      by RavenDB's convention.
    - ``per`` is a list of paths, each a field of the model or the ``.year``, ``.month``
      or ``.day`` of one: each combination of their values is a series with numbers of
      its own, and ``look`` a format of the ids, ``"INV-{date.year}-{number:04}"``.
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

    kind = HiLoIds
    kind_in_series = HiLoSeriesIds
    is_integer = False
    source = None
    own_options = {
        **IdField.own_options,
        **dict.fromkeys(("anchor", "convention", "width", "capacity", "max_capacity")),
        "server_ids": False,
    }
    non_db_attrs = (*models.CharField.non_db_attrs, *own_options)

    def __init__(
        self,
        verbose_name: VerboseName = None,
        *,
        collection: str | None = None,
        per: Sequence[str] = (),
        look: str | None = None,
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
        super().__init__(verbose_name, any_id=any_id, per=per, look=look, **kwargs)

    def takes(self, value: Any) -> bool:
        is_request = self.is_valid_request(value)
        return is_request or self.convention is not None or super().takes(value)

    def refuse_request(self, value: str) -> None:
        if self.is_valid_request(value):
            raise HiLoError(
                f"{value!r} requests an id, which only save() of a new object and "
                f"bulk_create() of a HiLoManager provide."
            )

    def home_and_source(self, using: str) -> tuple[str, Source]:
        return own_home_and_source(self.collection_name, using)

    def is_valid_request(self, value: Any) -> bool:
        """Whether a value asks for an id; raises ValidationError if it may not."""
        if not is_request(value):
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


def _untagged(ids: Explicit) -> Explicit:
    """Return those of the ids that have no node tag, as gapless ids are."""
    parsed = {id: parse_alike(id) for id in ids}
    return {id: ids[id] for id, parts in parsed.items() if parts and not parts.node_tag}
