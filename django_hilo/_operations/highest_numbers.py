"""Look into the tables of the models for the highest number of a counter."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from django.db import Error, connections, transaction
from django.db.models import F, Max
from django.db.models.functions import Lower

from django_hilo._allocation.registry import fields_of, series_fields_of
from django_hilo._operations.highest_in_series import highest_in_series
from django_hilo._operations.locations import fields_on, series_fields_on, served_by
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.fields.lookups import Number
from django_hilo.identifiers import parse_or_none, shown

_CHUNK = 10_000


class Highest(NamedTuple):
    """The highest number of a counter in one table, or why it could not be read."""

    model: str  # its label
    using: str
    number: int
    id: str
    rows: int  # with a number up to that of `highest_numbers`
    error: str


def highest_number(field: Any, using: str, node_tag: str) -> tuple[int, str]:
    """Return the highest number of a counter of the field in its table, and its id.

    They are 0 and "" if there is none.

    ``node_tag`` is the counter's: "" for integers and gapless numbers. Ids of other
    nodes, other collections and other shapes do not count. Uses an index of
    the number (docs/how-to/lookups.md), and without one reads the whole column.
    """
    return _highest(field, using, {"", node_tag}, 0)[:2]


def check_jump(known: int, number: int, id: str) -> None:
    """Raise `HiLoError` if a row's number is absurdly far above its counter."""
    jump = settings.MAX_FLOOR_JUMP
    if number - known > jump:
        raise HiLoError(
            f"The id {shown(id)} is {number - known:,} above the counter ({known}), "
            f"more than HILO['MAX_FLOOR_JUMP'] ({jump:_}), and all later ids would be "
            f"higher still. So the counter stays as it is, even if lower ids are above "
            f"it, too. Correct the row, or use --force."
        )


def highest_numbers(
    collection: str, node_tag: str, home: str, up_to: int = 0
) -> list[Highest]:
    """Look into every table, on every database, whose ids come from a counter.

    ``home`` is the database that holds the counter. Ids without a tag count for every
    node: which one gave them cannot be seen. Reads as `highest_number` does, and all
    rows to count those with a number up to ``up_to``.
    """
    fields = [*fields_of(collection), *series_fields_of(collection)]
    found = []
    for using in served_by(home):
        here = [*fields_on(using), *series_fields_on(using)]
        for field in (f for f in here if f in fields):
            number, text, rows, error = 0, "", 0, ""
            try:
                with sparing(using):
                    tags = {"", node_tag}
                    number, text, rows = (
                        _highest_of_series(field, using, collection, up_to)
                        if field.per
                        else _highest(field, using, tags, up_to)
                    )
            except (Error, connections[using].Database.Error) as problem:  # type: ignore[attr-defined] # the driver's
                # With psycopg 2, closing the cursor fails next and hides the cause.
                error = str(problem.__context__ or problem)
            label = field.model._meta.label
            found.append(Highest(label, using, number, text, rows, error))
    return found


def sparing(using: str) -> AbstractContextManager[object]:
    """Keep a caller's transaction usable after an error, by a savepoint.

    Outside a transaction none is begun: on SQLite it could lock all writers out.
    """
    if connections[using].in_atomic_block:
        return transaction.atomic(using=using)
    return nullcontext()


def _highest_of_series(
    field: Any, using: str, name: str, up_to: int
) -> tuple[int, str, int]:
    for series, number, rows in highest_in_series(field, using, up_to):
        if series.name == name:
            return number, series.format.text(number), rows
    return 0, "", 0


def _highest(
    field: Any, using: str, node_tags: set[str], up_to: int
) -> tuple[int, str, int]:
    rows = field.model._base_manager.using(using).order_by()
    if getattr(field, "is_integer", False):
        number = max(rows.aggregate(top=Max(field.attname))["top"] or 0, 0)
        known = rows.filter(**{f"{field.attname}__range": (1, up_to)})
        return number, str(number), known.count() if up_to else 0
    collection = field.collection_name.lower()
    if _indexes_numbers(field):
        name = field.attname
        # LOWER() keeps SQLite from indexes of the other parts.
        part, tag = Lower(f"{name}__collection"), Lower(f"{name}__node_tag")
        tags = [each.lower() for each in node_tags]
        found = (
            rows.alias(hilo_collection=part, hilo_tag=tag)
            .filter(hilo_collection=collection, hilo_tag__in=tags)
            .filter(**{f"{name}__number__gt": 0})
            .order_by(f"-{name}__number")
            .values_list(f"{name}__number", name)
        )
        known = found.filter(**{f"{name}__number__lte": up_to})
        return *(found.first() or (0, "")), known.count() if up_to else 0
    texts = rows.values_list(field.attname, flat=True).iterator(chunk_size=_CHUNK)
    highest, its_id, known = 0, "", 0
    for text in texts:
        document_id = parse_or_none(text)
        if (
            document_id is not None
            and document_id.collection.lower() == collection
            and document_id.node_tag in node_tags
        ):
            known += document_id.number <= up_to
            if document_id.number > highest:
                highest, its_id = document_id.number, text
    return highest, its_id, known


def _indexes_numbers(field: Any) -> bool:
    """Whether the model has an index of the numbers of the field's ids.

    Without one a database takes longer over the numbers than Python does.
    """
    options = field.model._meta
    found = [part for index in options.indexes for part in index.expressions]
    found += [f.expression for f in options.local_fields if f.generated and f.db_index]
    numbers = (F(f"{field.name}__number"), F("pk__number"), Number(field.name))
    return any(getattr(part, "expression", part) in numbers for part in found)
