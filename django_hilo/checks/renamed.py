"""System check of models whose rows have the ids of another name."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.core import checks

from django_hilo._allocation.registry import fields_of, home_of
from django_hilo._operations.locations import aliases, fields_on
from django_hilo.checks.answers import answers
from django_hilo.fields import HiLoField
from django_hilo.identifiers import parse_or_none
from django_hilo.models import HiLoDocument


def check_renamed(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Warn before the first id of a model that was renamed: it will have a new name."""
    for alias in aliases():
        if alias in (databases or ()):
            ask = partial(_renamed, alias)
            yield from answers(ask, home_of(alias), "The counters of models")


def _renamed(alias: str) -> Iterator[checks.CheckMessage]:
    """Look at the fields that name no collection, and have no counter yet."""
    fields = [
        field
        for field in fields_on(alias)
        if isinstance(field, HiLoField)
        and field.collection is None
        and field.convention is None
        and not field.any_id
    ]
    names = [field.collection_name.lower() for field in fields]
    rows = HiLoDocument.objects.using(home_of(alias)).filter(collection__in=names)
    known = set(rows.values_list("collection", flat=True))
    for field, name in zip(fields, names, strict=True):
        if name not in known:
            ask = partial(_with_other_ids, field, alias)
            yield from answers(ask, alias, f"The table of {field.model._meta.label}")


def _with_other_ids(field: Any, alias: str) -> Iterator[checks.CheckMessage]:
    """Look at one row, which is cheap."""
    rows = field.model._base_manager.using(alias).order_by()
    for id in map(parse_or_none, rows.values_list(field.attname, flat=True)[:1]):
        if id is not None and not fields_of(id.collection):
            yield checks.Warning(
                f"The next id of {field} will start with {field.collection_name!r}, "
                f"but its table on {alias!r} has ids such as {str(id)!r}.",
                hint=f"If the model was renamed, set collection={id.collection!r} on "
                f"the field to keep the ids' name. Otherwise silence this check.",
                obj=field,
                id="django_hilo.W117",
            )
