"""System checks of one field; each id is explained in docs/reference/checks.md."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db import models

from django_hilo.anchors import anchor_field
from django_hilo.conf import settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, check_collection, id_end
from django_hilo.sharding.placement import is_sharded
from django_hilo.sources.foreign import ForeignCounter

if TYPE_CHECKING:
    from django_hilo.fields.base import GivesIds, IdField
    from django_hilo.fields.bucket import BucketField
    from django_hilo.fields.gapless import GaplessIdField
    from django_hilo.fields.hilo import HiLoField
    from django_hilo.fields.integer import HiLoBigAutoField


def check_hilo_field(field: HiLoField) -> list[checks.CheckMessage]:
    """Return what is wrong with a HiLoField, without any query."""
    return [
        *_check_collection(field),
        *_check_anchor(field),
        *_check_convention(field),
        *_check_width(field),
        *_check_max_length(field),
        *_check_capacities(field),
        *_check_server_ids(field),
        *_check_default(field),
    ]


def check_integer_field(field: HiLoBigAutoField) -> list[checks.CheckMessage]:
    """Return what is wrong with a HiLoBigAutoField, without any query."""
    return [
        *_check_collection(field),
        *_check_source(field),
        *_check_capacities(field),
        *_check_default(field),
    ]


def check_gapless_field(field: GaplessIdField) -> list[checks.CheckMessage]:
    """Return what is wrong with a GaplessIdField, without any query."""
    return [
        *_check_collection(field),
        *_check_no_source(field),
        *_check_one_database(field),
        *_check_room(field, len(f"{field.collection_name}/{MAX_NUMBER}")),
        *_check_default(field),
    ]


def check_bucket_field(field: BucketField) -> list[checks.CheckMessage]:
    """Return what is wrong with a BucketField, without any query."""
    found: list[checks.CheckMessage] = []
    if find_spec("xxhash") is None:
        found.append(
            checks.Error(
                "A BucketField needs the package xxhash.",
                hint='pip install "django-hilo[sharding]"',
                obj=field,
                id="django_hilo.E110",
            )
        )
    try:
        source: Any = field.model._meta.get_field(field.source)
        if source is field or source.many_to_many or not source.concrete:
            raise FieldDoesNotExist(f"{source} holds no id.")
    except (FieldDoesNotExist, TypeError) as error:
        found.append(
            checks.Error(
                f"The source {field.source!r} names no field of an id.",
                hint=f"{error} Name the HiLoField, or a relation to its object.",
                obj=field,
                id="django_hilo.E111",
            )
        )
    else:
        if source.null and not field.null:
            found.append(
                checks.Error(
                    f"The source {field.source!r} may be NULL, the bucket may not.",
                    hint="Set null=True on the BucketField.",
                    obj=field,
                    id="django_hilo.E111",
                )
            )
    return found


def _check_collection(field: GivesIds) -> list[checks.CheckMessage]:
    try:
        check_collection(field.collection_name)
    except (InvalidDocumentId, TypeError) as error:
        return [
            checks.Error(
                f"The collection {field.collection_name!r} cannot stand in an id.",
                hint=f"{error} Set collection= on the field.",
                obj=field,
                id="django_hilo.E101",
            )
        ]
    return []


def _check_no_source(field: GaplessIdField) -> list[checks.CheckMessage]:
    if not _has_source(field):
        return []
    return [
        checks.Error(
            f"It gives ids such as '{field.collection_name}/1', and so does the source "
            f"of that collection in HILO['SOURCES'].",
            hint="Set collection= to another one.",
            obj=field,
            id="django_hilo.E108",
        )
    ]


def _check_source(field: HiLoBigAutoField) -> list[checks.CheckMessage]:
    if field.source is None or isinstance(field.source, ForeignCounter):
        return []
    return [
        checks.Error(
            f"The source {field.source!r} is none.",
            hint="Name one of django_hilo.sources, such as hibernate.HiLo(max_lo=9).",
            obj=field,
            id="django_hilo.E112",
        )
    ]


def _check_anchor(field: HiLoField) -> list[checks.CheckMessage]:
    anchor = field.anchor
    if anchor is None:
        return []
    if callable(anchor):
        return _check_importable(field, "anchor", anchor)
    try:
        last = anchor_field(field.model, anchor)
        if last is field or last.many_to_many or not last.concrete:
            raise FieldDoesNotExist(f"{last} holds no id of another object.")
    except (FieldDoesNotExist, AttributeError, TypeError) as error:
        return [
            checks.Error(
                f"The anchor {anchor!r} names no field.",
                hint=f"{error} Name a relation or field of the model, such as 'order' "
                f"or 'order__customer', or a function.",
                obj=field,
                id="django_hilo.E103",
            )
        ]
    return []


def _check_convention(field: HiLoField) -> list[checks.CheckMessage]:
    if field.convention is None:
        return []
    return _check_importable(field, "convention", field.convention)


def _check_importable(
    field: HiLoField, option: str, given: Any
) -> list[checks.CheckMessage]:
    name = getattr(given, "__qualname__", "<")
    if callable(given) and "<" not in name:
        return []
    return [
        checks.Error(
            f"The {option} {given!r} cannot be imported, so no migration can name it.",
            hint="Make it a function of a module.",
            obj=field,
            id="django_hilo.E102",
        )
    ]


def _check_width(field: HiLoField) -> list[checks.CheckMessage]:
    if field.width is None or (
        type(field.width) is int and 1 <= field.width <= MAX_WIDTH
    ):
        return []
    return [
        checks.Error(
            f"width={field.width!r} is no count of digits.",
            hint=f"It must be None, or from 1 to {MAX_WIDTH}; {MAX_WIDTH} makes the "
            f"order of texts that of numbers.",
            obj=field,
            id="django_hilo.E107",
        )
    ]


def _check_server_ids(field: HiLoField) -> list[checks.CheckMessage]:
    if not field.server_ids:
        return []
    if settings.SHOW_NODE_TAG and not _has_source(field):
        return _check_one_database(field)
    return [
        checks.Error(
            "server_ids=True gives ids such as 'orders/1', and so does the counter: "
            "its ids hide the node tag (HILO['SHOW_NODE_TAG']), or have none, as "
            "numbers of a source do (HILO['SOURCES']).",
            hint="Show the node tag, or take gapless ids from a GaplessIdField of "
            "another collection.",
            obj=field,
            id="django_hilo.E108",
        )
    ]


def _has_source(field: IdField) -> bool:
    sources = settings.SOURCES if isinstance(settings.SOURCES, dict) else {}
    collection = field.collection_name.lower()
    return any(str(name).lower() == collection for name in sources)


def _check_one_database(field: IdField) -> list[checks.CheckMessage]:
    if not is_sharded(field.model):
        return []
    return [
        checks.Error(
            "It gives gapless numbers, and its rows are spread over shards: each would "
            "count for itself.",
            hint="Keep the model's rows together (ShardRouter.is_sharded), or use HiLo "
            "ids.",
            obj=field,
            id="django_hilo.E015",
        )
    ]


def _check_max_length(field: HiLoField) -> list[checks.CheckMessage]:
    return _check_room(field, _longest(field))


def _check_room(field: IdField, longest: int | None) -> list[checks.CheckMessage]:
    if longest is None or field.max_length is None or field.max_length >= longest:
        return []
    return [
        checks.Error(
            f"max_length={field.max_length} is less than the {longest} characters of "
            f"the longest id of {field.collection_name!r}.",
            hint=f"Set max_length={longest} or more (a server prefix comes on top).",
            obj=field,
            id="django_hilo.E104",
        )
    ]


def _longest(field: HiLoField, depth: int = 0) -> int | None:
    """Return the length of the longest id, None where it is not known."""
    if field.convention is not None:
        return None
    tags = settings.NODE_TAG
    given = tags.values() if isinstance(tags, dict) else [tags]
    tag = max((str(tag) for tag in given), key=len, default="A")
    end = id_end(tag) if settings.SHOW_NODE_TAG else ""
    longest = len(f"{field.collection_name}/{MAX_NUMBER}{end}")
    if field.anchor is None:
        return longest
    if callable(field.anchor) or depth > 8:
        return None
    anchored = _longest_anchor(field, field.anchor, depth)
    return None if anchored is None else longest + 1 + anchored


def _longest_anchor(field: HiLoField, path: str, depth: int) -> int | None:
    try:
        last: Any = anchor_field(field.model, path)
    except (FieldDoesNotExist, AttributeError, TypeError):
        return None
    if isinstance(last, models.ForeignKey):
        related = last.remote_field.model
        last = related._meta.pk if isinstance(related, type) else None
    if isinstance(last, type(field)):
        return _longest(last, depth + 1)
    return getattr(last, "max_length", None)


def _check_capacities(field: HiLoField | HiLoBigAutoField) -> list[checks.CheckMessage]:
    least = settings.CAPACITY if field.capacity is None else field.capacity
    most = settings.MAX_CAPACITY if field.max_capacity is None else field.max_capacity
    numbers = all(type(value) is int for value in (least, most))
    if numbers and 1 <= least <= most:
        return []
    return [
        checks.Error(
            f"capacity {least!r} and max_capacity {most!r} bound no range.",
            hint="Both must be whole numbers, with 1 <= capacity <= max_capacity.",
            obj=field,
            id="django_hilo.E105",
        )
    ]


def _check_default(field: GivesIds) -> list[checks.CheckMessage]:
    if not field.has_default() and not field.has_db_default():
        return []
    return [
        checks.Error(
            f"A {type(field).__name__} makes its values itself and takes no default.",
            hint="Remove default= or db_default=.",
            obj=field,
            id="django_hilo.E106",
        )
    ]
