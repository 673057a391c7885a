"""The filter by which the lists of counters group series."""

# mypy: allow-any-generics
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.registry import series_fields, starts_of_series
from django_hilo.models import GaplessCounter


class SeriesFilter(admin.SimpleListFilter):
    """The models whose numbers have a counter for each tenant, year or the like."""

    title = _("series")
    parameter_name = "series"
    _OTHERS = "-"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request)
        choices = _choices(rows.model).items()
        found = [
            (each, each) for each, chosen in choices if rows.filter(chosen).exists()
        ]
        return [*found, (self._OTHERS, gettext("not in series"))] if found else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        choices, value = _choices(queryset.model), self.value()
        if value == self._OTHERS:
            for chosen in choices.values():
                queryset = queryset.exclude(chosen)
        return queryset.filter(choices.get(value or "", Q()))


def _choices(model: Any) -> dict[str, Q]:
    """Return the rows of a model that are series, by the fields that have these."""
    found = {}
    for field in series_fields():
        if field.ids.is_gapless == (model is GaplessCounter):
            plain, hashed = starts_of_series(field)
            starts = Q(collection__startswith=plain), Q(collection__startswith=hashed)
            found[str(field)] = starts[0] | starts[1]
    return found
