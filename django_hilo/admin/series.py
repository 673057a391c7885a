"""The filter by which the lists of counters group series."""

# mypy: allow-any-generics
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.registry import series_fields, starts_of_series


class SeriesFilter(admin.SimpleListFilter):
    """The models whose numbers have a counter for each tenant, year or the like."""

    title = _("series")
    parameter_name = "series"
    _OTHERS = "-"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request)
        choices = _choices().items()
        found = [
            (each, each) for each, chosen in choices if rows.filter(chosen).exists()
        ]
        return [*found, (self._OTHERS, gettext("not in series"))] if found else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        choices, value = _choices(), self.value()
        if value == self._OTHERS:
            for chosen in choices.values():
                queryset = queryset.exclude(chosen)
        return queryset.filter(choices.get(value or "", Q()))


def _choices() -> dict[str, Q]:
    fields = {str(each): starts_of_series(each) for each in series_fields()}
    return {
        name: Q(collection__startswith=plain) | Q(collection__startswith=hashed)
        for name, (plain, hashed) in fields.items()
    }
