"""The ids of a field with ``per``: each series has a counter of its own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from django.db import models

from django_hilo._allocation.registry import Series
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._ids import Explicit, Instances
from django_hilo.fields._series import SeriesRule, split_number


class InSeries(AssignedIds):
    """What both kinds of fields with ``per`` share."""

    @cached_property
    def rule(self) -> SeriesRule:
        """The paths and the look of the field; raises ValueError if they are wrong."""
        return SeriesRule(self.field)

    def series_of(self, instance: models.Model) -> Series:
        """Return the series of an instance; `HiLoError` for a value that is missing."""
        return self.rule.of(instance)

    def by_series(
        self, instances: Iterable[models.Model]
    ) -> dict[Series, list[models.Model]]:
        """Return the instances by their series, in the order of the names."""
        found: dict[Series, list[models.Model]] = {}
        for each in instances:
            found.setdefault(self.series_of(each), []).append(each)
        return dict(sorted(found.items(), key=lambda item: item[0].name))

    def number_in(self, value: Any, using: str) -> int | None:
        return split_number(value)[1]

    def explicit_ids(self, instances: Instances, using: str) -> Explicit:
        found: Explicit = {}
        for instance, value, alias in self.explicit_values(instances, using):
            if alias is None or not self.shares_counter(alias, using):
                named = self.rule.read(value, instance)
                if named is not None:
                    found[named[0], str(value)] = named[1]
        return found

    def is_noted(self, instance: models.Model, found: Explicit) -> bool:
        value = str(self.value_of(instance))
        return any(value == id for _, id in found)


def ids_by_series(ids: Explicit) -> dict[Series, dict[str, int]]:
    """Return explicit ids by their series."""
    found: dict[Series, dict[str, int]] = {}
    for (series, id), number in ids.items():
        found.setdefault(series, {})[id] = number
    return found
