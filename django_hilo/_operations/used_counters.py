"""Whether ids come from a stored counter, or from another one of their collection."""

from typing import Any

from django.utils.translation import gettext as _

from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import (
    fields_of,
    given_source,
    series_fields_of,
)
from django_hilo._operations.locations import served_by
from django_hilo.exceptions import CounterNotUsed
from django_hilo.models import HiLoDocument


def fields_using(document: HiLoDocument) -> list[Any]:
    """Return the fields whose ids come from a stored counter.

    Integer keys have another one on PostgreSQL, and none with a node tag. Collections
    with a source have another one, too.
    """
    found = series_fields_of(document.collection)
    for field in fields_of(document.collection):
        is_plain = not field.is_integer and given_source(field) is None
        if is_plain or _counts(document, field):
            found.append(field)
    return found


def _counts(document: HiLoDocument, field: Any) -> bool:
    """Whether a stored counter is that of an integer key, or of a source."""
    using, tag = str(document._state.db), document.node_tag
    # The rows may be on any database that this one serves.
    found = (resolve(field, alias) for alias in (using, *served_by(using)))
    key = using, (document.collection.lower(), tag)
    return any((each.using, each.source.key) == key for each in found)


def check_used(document: HiLoDocument, number: int) -> None:
    """Raise `CounterNotUsed` if the models of a stored counter have another one."""
    fields = fields_of(document.collection)
    if not fields or fields_using(document):
        return
    model, using = fields[0].model._meta.label, str(document._state.db)
    source = resolve(fields[0], using).source.name
    known = {"model": model, "database": using, "source": source}
    raise CounterNotUsed(
        _(
            "The keys of %(model)s on %(database)r come from %(source)s. To start them "
            "at %(next)s, call raise_floor('%(model)s', %(number)s) of "
            "django_hilo.generator."
        )
        % {**known, "number": number, "next": number + 1}
    )
