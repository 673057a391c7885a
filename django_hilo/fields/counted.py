"""Explicit ids of fields whose numbers come from a counter or a source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models

from django_hilo._allocation import explicit_ids
from django_hilo._allocation.target import Target, resolve
from django_hilo.fields.instance_state import assigned_for, value_of, with_explicit_id


class CountedIds:
    """Keeps the ranges of a field's counter clear of explicit ids."""

    def explicit_ids(
        self: Any, instances: Iterable[models.Model], using: str
    ) -> dict[str, int]:
        found: dict[str, int] = {}
        explicit = with_explicit_id(instances, self, using)
        if not explicit:
            return found
        target = resolve(self, using)
        for instance in explicit:
            alias = assigned_for(instance, self)
            if alias is not None and resolve(self, alias).key == target.key:
                continue  # assigned for another alias with the same counter
            value = value_of(instance, self)
            number = self.number_in(value, target)
            if number is not None:
                found[str(value)] = number
        return found

    def number_in(self, value: Any, target: Target) -> int | None:
        """Return the number of an id that the counter could give, else None."""
        raise NotImplementedError  # pragma: no cover - each kind has its own

    def check_jump(self: Any, ids: dict[str, int], using: str) -> None:
        highest = max(ids, key=lambda id: ids[id])
        explicit_ids.check_jump(resolve(self, using), ids[highest], highest)

    def reserve(self: Any, ids: dict[str, int], using: str) -> None:
        explicit_ids.expect(resolve(self, using), list(ids.values()))

    def record(self: Any, ids: dict[str, int], using: str) -> None:
        explicit_ids.observe(resolve(self, using), list(ids.values()), using)
