"""Look into the table of a model for the highest number of each series."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Max

from django_hilo._allocation.registry import Series
from django_hilo.fields.lookups import Number, Start


def highest_in_series(field: Any, using: str) -> Iterator[tuple[Series, int]]:
    """Yield the series of a field that have rows, each with its highest number.

    The database groups the rows, and reads each once. A text counts for the series that
    it names, else for that of its row; other texts do not count.
    """
    rule, highest = field.ids.rule, dict[Series, int]()
    paths = {f"hilo_{place}": path.expression for place, path in enumerate(rule.paths)}
    rows = field.model._base_manager.using(using).order_by()
    groups = (
        rows.annotate(**paths, hilo_start=Start(field.attname))
        .values("hilo_start", *paths)
        .annotate(hilo_top=Max(Number(field.attname)))
        .values_list("hilo_top", "hilo_start", *paths)
    )
    for number, start, *values in groups.iterator():
        series = None if number is None else rule.named(start, values)
        if series is not None:
            highest[series] = max(highest.get(series, 0), number)
    yield from sorted(highest.items(), key=lambda item: item[0].name)
