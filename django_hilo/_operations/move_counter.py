"""Moving a counter: from another system's to our own, and back; never down."""

from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, router

from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import (
    fields_of,
    given_source,
    home_of,
    named_source,
)
from django_hilo._operations.highest_numbers import check_jump, highest_number
from django_hilo._operations.locations import may_have_table
from django_hilo._operations.report import reach
from django_hilo.conf import settings
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.own import OwnSource
from django_hilo.counters.source import Source
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import check_collection


class Place(NamedTuple):
    """A counter, and the database that it is on."""

    source: Source
    using: str

    @property
    def name(self) -> str:
        """The name of the counter in messages."""
        return f"{self.source.name} on {self.using!r}"


class Finding(NamedTuple):
    """The highest number that a place holds, or may have given."""

    name: str
    number: int
    id: str = ""  # of the row that has it, if one has


class Move(NamedTuple):
    """A counter to raise, and the number to raise it to."""

    to: Place
    before: int
    found: list[Finding]

    @property
    def number(self) -> int:
        """The number that all coming ids will be over."""
        return max(self.before, *(finding.number for finding in self.found))

    @property
    def is_needed(self) -> bool:
        """Whether the counter is lower than what was found."""
        return self.number > self.before

    def check_jump(self) -> None:
        """Raise `HiLoError` if a row's number is absurdly far above both counters."""
        given = [finding.number for finding in self.found if not finding.id]
        for finding in self.found:
            if finding.id:
                check_jump(max(self.before, *given, 0), finding.number, finding.id)

    def make(self) -> None:
        """Raise the counter, under its lock; what was raised meanwhile stays."""
        self.to.source.raise_floor(self.to.using, self.number)


def plan(
    target: str,
    using: str | None = None,
    *,
    source: Source | None = None,
    table: KeyColumn | None = None,
    back: bool = False,
) -> Move:
    """Look up what moving a counter means, and change nothing.

    ``target`` is a collection or a label such as "shop.Order", ``using`` the database
    of the rows. From ``source`` (None: that of the field or of HILO["SOURCES"]) to our
    own counter, or ``back``. Rows with the target's ids count, and so do the keys of a
    ``table`` beside. Raises `HiLoError` where there is nothing to move, LookupError
    for an unknown label.
    """
    fields = [resolve(target, using).field] if "." in target else fields_of(target)
    field = fields[0] if fields else None
    if using is None:
        using = router.db_for_write(field.model) if field else DEFAULT_DB_ALIAS
    collection = field.collection_name if field else check_collection(target)
    own = _own(collection, field, using)
    reach(using, own.using)
    given = source or (given_source(field) if field else named_source(collection))
    foreign = Place(given, using) if given is not None else None
    if back and foreign is None:
        raise HiLoError(
            f"{collection!r} has no source to move its counter to: set one on the "
            f"field or in HILO['SOURCES'], or pass --source."
        )
    found = []
    # Ids without a tag came from the source, those with one from our own counter.
    tag = own.source.node_tag if isinstance(own.source, OwnSource) else ""
    for each in fields_of(collection):
        if may_have_table(using, each.model):
            label = f"{each.model._meta.label} on {using!r}"
            found.append(Finding(label, *highest_number(each, using, tag)))
    if table is not None:
        name = f"{table.table}.{table.column} on {using!r}"
        number = table.highest(using)
        found.append(Finding(name, number, str(number)))
    other, to = (own, foreign) if back and foreign is not None else (foreign, own)
    if other is not None:
        found.append(Finding(other.name, other.source.read_max(other.using)))
    if not found:
        raise HiLoError(
            f"{collection!r} has neither a source nor a model to read numbers from: "
            f"pass --source or --table."
        )
    return Move(to, to.source.read_max(to.using), found)


def _own(collection: str, field: Any, using: str) -> Place:
    if field is None:
        home = home_of(using)
        return Place(OwnSource(collection, settings.node_tag(home)), home)
    home, source = field.home_and_source(using)
    return Place(source, home)
