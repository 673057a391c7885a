"""Look into the table of a model for the highest number of each series."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Max, Q, Value

from django_hilo._allocation.registry import Series
from django_hilo.fields.lookups import Number, Start


def highest_in_series(
    field: Any, using: str, up_to: int = 0
) -> Iterator[tuple[Series, int, int]]:
    """Yield the series of a field that have rows, each with its highest number.

    And with the rows that have a number of at most ``up_to``; 0: they are not counted.
    The database groups the rows, and reads each once. A text counts for the series that
    it names, else for that of its row; other texts do not count.
    """
    rule, found = field.ids.rule, dict[Series, tuple[int, int]]()
    paths = {f"hilo_{place}": path.expression for place, path in enumerate(rule.paths)}
    rows = field.model._base_manager.using(using).order_by()
    known = Q(**{f"{field.attname}__number__lte": up_to})
    rows_up_to = Count(field.attname, filter=known) if up_to else Value(0)
    groups = (
        rows.annotate(**paths, hilo_start=Start(field.attname))
        .values("hilo_start", *paths)
        .annotate(hilo_top=Max(Number(field.attname)), hilo_rows=rows_up_to)
        .values_list("hilo_top", "hilo_rows", "hilo_start", *paths)
    )
    for number, n, start, *values in groups.iterator():
        series = None if number is None else rule.named(start, values)
        if series is not None:
            highest, so_far = found.get(series, (0, 0))
            found[series] = max(highest, number), so_far + n
    for series in sorted(found, key=lambda each: each.name):
        yield series, *found[series]
