"""System checks of each field; docs/reference/checks.md explains every id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import FieldDoesNotExist
from django.db import models, router

from django_hilo._allocation.registry import series_fields
from django_hilo.checks.id_lengths import (
    NO_FIELD,
    end_of_path,
    least_in_series,
    longest_id,
)
from django_hilo.conf import settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.fields import BucketField, GaplessIdField, HiLoBigAutoField, HiLoField
from django_hilo.fields._series import SeriesRule, is_late
from django_hilo.fields._text_ids import IdField
from django_hilo.fields.saving import GivesIds
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, check_collection
from django_hilo.sources.foreign import ForeignCounter


def check_fields(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Check the fields of the given apps' models, or of all models."""
    configs = apps.get_app_configs() if app_configs is None else app_configs
    return [
        message
        for config in configs
        for model in config.get_models()
        for message in check_model(model)
    ]


def check_model(model: type[models.Model]) -> list[CheckMessage]:
    """Check the fields that a model does not inherit from another table."""
    fields = model._meta.local_fields
    return [message for field in fields for message in check_field(field)]


def check_field(field: models.Field[Any, Any]) -> list[CheckMessage]:
    """Return the errors of one field, without a query."""
    found: list[CheckMessage] = []
    if isinstance(field, BucketField):
        found += _bucket_errors(field)
    if isinstance(field, GivesIds):
        found += _id_errors(field)
    if isinstance(field, HiLoField):
        found += _hilo_errors(field)
    elif isinstance(field, HiLoBigAutoField):
        found += _source_errors(field)
    elif isinstance(field, GaplessIdField):
        found += _gapless_errors(field)
    if isinstance(field, IdField) and (field.per or field.look is not None):
        found += _series_errors(field)
    if isinstance(field, HiLoField | HiLoBigAutoField):
        found += _capacity_errors(field)
    return found


def _id_errors(field: Any) -> Iterator[Error]:
    try:
        check_collection(field.collection_name)
    except (InvalidDocumentId, TypeError) as error:
        yield _error(
            field,
            "E101",
            f"The collection {field.collection_name!r} is not valid.",
            f"{str(error).rstrip('.')}. Set collection= on the field.",
        )
    if field.has_default() or field.has_db_default():
        yield _error(
            field,
            "E106",
            f"A {type(field).__name__} creates its own values and takes no default.",
            "Remove default= or db_default=.",
        )


def _hilo_errors(field: HiLoField) -> Iterator[Error]:
    yield from _anchor_errors(field)
    if field.convention is not None:
        yield from _import_errors(field, "convention", field.convention)
    width = field.width
    if width is not None and not (type(width) is int and 1 <= width <= MAX_WIDTH):
        yield _error(
            field,
            "E107",
            f"width={width!r} is not a valid number of digits.",
            f"Use None, or 1 to {MAX_WIDTH}; with {MAX_WIDTH}, ids sort like their "
            f"numbers.",
        )
    if field.look is None:
        yield from _length_errors(field, longest_id(field))
    if field.server_ids:
        yield from _server_id_errors(field)


def _anchor_errors(field: HiLoField) -> Iterator[Error]:
    anchor = field.anchor
    if anchor is None:
        return
    if callable(anchor):
        yield from _import_errors(field, "anchor", anchor)
        return
    try:
        last = end_of_path(field.model, anchor)
        if last is field or last.many_to_many or not last.concrete:
            raise FieldDoesNotExist(f"{last} does not refer to another object.")
        if "__" not in anchor and is_late(last):
            raise FieldDoesNotExist(f"{last} has no value in a new object.")
    except NO_FIELD as error:
        yield _error(
            field,
            "E103",
            f"The anchor {anchor!r} is not the name of a field with a value.",
            f"{str(error).rstrip('.')}. Name a relation or field of the model, such as "
            f"'order' or 'order__customer', or pass a function.",
        )


def _import_errors(field: HiLoField, option: str, given: Any) -> Iterator[Error]:
    if not callable(given) or "<" in getattr(given, "__qualname__", "<"):
        yield _error(
            field,
            "E102",
            f"The {option} {given!r} cannot be imported by a migration.",
            "Define it as a function at the top level of a module.",
        )


def _server_id_errors(field: HiLoField) -> Iterator[Error]:
    if settings.SHOW_NODE_TAG and not _has_source(field):
        return
    yield _error(
        field,
        "E108",
        "server_ids=True makes ids such as 'orders/1', and so does the counter: its "
        "ids do not show the node tag (HILO['SHOW_NODE_TAG']), or come from a source "
        "(HILO['SOURCES']).",
        "Show the node tag, or use a GaplessIdField with another collection.",
    )


def _gapless_errors(field: GaplessIdField) -> Iterator[Error]:
    if _has_source(field):
        yield _error(
            field,
            "E108",
            f"Its ids, such as '{field.collection_name}/1', can equal those from the "
            f"source of that collection in HILO['SOURCES'].",
            "Set collection= to another name.",
        )
    if field.look is None:
        longest = len(f"{field.collection_name}/{MAX_NUMBER}")
        yield from _length_errors(field, longest)


def _series_errors(field: IdField) -> Iterator[Error]:
    field_of_series: Any = field
    try:
        # Processes have no common order of a set.
        if not field.per or not isinstance(field.per, tuple):
            raise ValueError(f"per={field.per!r} must be a list of paths.")
        rule = SeriesRule(field)
        for option in ("anchor", "convention", "width", "server_ids"):
            if getattr(field, option, None):
                raise ValueError(f"{option}= has no meaning beside per=.")
        for path in rule.paths:
            path.check()
        for other in (*field.model._meta.local_fields, *series_fields()):
            if _has_same_counters(field, other):
                raise ValueError(
                    f"{other} has the same collection, and would take the numbers of "
                    f"its series: set collection= on one of them to another name."
                )
    except ValueError as error:
        yield _error(
            field,
            "E109",
            str(error),
            "Set per=['tenant', 'date.year'] to fields of the model or parts of dates, "
            "and look='INV-{date.year}-{number:04}' to a format of these.",
        )
        return
    others = [path for path in rule.paths if path.text not in rule.written]
    per = {path.field.name for path in rule.paths}
    for names in _unique_beside(field_of_series):
        free = [path.text for path in others if path.field.name not in names]
        if free and names <= per:
            beside = f" together with {', '.join(sorted(names))}" if names else ""
            yield _error(
                field,
                "E113",
                f"It is unique{beside}, but the look leaves out {', '.join(free)}: ids "
                f"of two series would be the same.",
                "Let the look write each path of per=, or use a UniqueConstraint of "
                "the field and the fields that it leaves out, and not unique=True.",
            )
            return
    yield from _length_errors(field, least_in_series(rule))
    left_out = list(dict.fromkeys(path.field.name for path in others))
    if not any(set(left_out) >= by for by in _unique_beside(field_of_series)):
        where = f"unique together with {', '.join(left_out)}" if left_out else "unique"
        columns = [*left_out, field.name]
        yield _error(
            field,
            "E113",
            f"Nothing keeps its ids {where}.",
            f"Add models.UniqueConstraint(fields={columns!r}, name=...) to "
            f"Meta.constraints."
            if left_out
            else "Set unique=True.",
        )


def _has_same_counters(field: IdField, other: Any) -> bool:
    is_same = other is field or not isinstance(other, IdField) or not other.per
    if is_same or other.is_copy:
        return False
    if other.model is not field.model:
        # Two models may share it, as somebody said, or be in two databases.
        homes = {router.db_for_write(each.model) for each in (field, other)}
        if field.collection is not None or len(homes) > 1:
            return False
    is_alike = isinstance(other, GaplessIdField) == isinstance(field, GaplessIdField)
    return is_alike and other.collection_name.lower() == field.collection_name.lower()


def _unique_beside(field: Any) -> Iterator[set[str]]:
    """Yield the names of fields that are unique together with a field."""
    meta = field.model._meta
    if field.unique:
        yield set()
    for names in meta.unique_together:
        if field.name in names:
            yield set(names) - {field.name}
    for constraint in meta.total_unique_constraints:
        if field.name in constraint.fields:
            yield set(constraint.fields) - {field.name}


def _source_errors(field: HiLoBigAutoField) -> Iterator[Error]:
    if field.source is not None and not isinstance(field.source, ForeignCounter):
        yield _error(
            field,
            "E112",
            f"The source {field.source!r} is not a source.",
            "Use one of django_hilo.sources, such as hibernate.HiLo(max_lo=9).",
        )


def _capacity_errors(field: HiLoField | HiLoBigAutoField) -> Iterator[Error]:
    least = settings.CAPACITY if field.capacity is None else field.capacity
    most = settings.MAX_CAPACITY if field.max_capacity is None else field.max_capacity
    numbers = all(type(value) is int for value in (least, most))
    if not numbers or not 1 <= least <= most:
        yield _error(
            field,
            "E105",
            f"capacity {least!r} and max_capacity {most!r} are not valid.",
            "Set integers with 1 <= capacity <= max_capacity, here or in HILO.",
        )


def _bucket_errors(field: BucketField) -> Iterator[Error]:
    if find_spec("xxhash") is None:
        yield _error(
            field,
            "E110",
            "BucketField requires the package xxhash.",
            'Run: pip install "django-hilo[sharding]"',
        )
    try:
        source: Any = field.model._meta.get_field(field.source)
        if source is field or source.many_to_many or not source.concrete:
            raise FieldDoesNotExist(f"{source} does not contain an id.")
    except NO_FIELD as error:
        yield _error(
            field,
            "E111",
            f"The source {field.source!r} is not the name of a field that contains an "
            f"id.",
            f"{str(error).rstrip('.')}. Name the HiLoField, or a relation to an object "
            f"that has one.",
        )
    else:
        if source.null and not field.null:
            yield _error(
                field,
                "E111",
                f"The source {field.source!r} may be NULL, but the bucket may not.",
                "Set null=True on the BucketField.",
            )


def _length_errors(field: IdField, longest: int | None) -> Iterator[Error]:
    given = field.max_length
    if longest is not None and isinstance(given, int) and given < longest:
        yield _error(
            field,
            "E104",
            f"max_length={field.max_length} is too short: the longest id of "
            f"{field.collection_name!r} has {longest} characters.",
            f"Set max_length={longest} or more (add the length of a server prefix).",
        )


def _has_source(field: IdField) -> bool:
    sources = settings.SOURCES if isinstance(settings.SOURCES, dict) else {}
    collection = str(field.collection_name).lower()
    return any(str(name).lower() == collection for name in sources)


def _error(field: Any, id: str, message: str, hint: str) -> Error:
    return Error(message, hint=hint, obj=field, id=f"django_hilo.{id}")
