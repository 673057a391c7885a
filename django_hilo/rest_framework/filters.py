from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.filters import BaseFilterBackend, OrderingFilter
from rest_framework.request import Request

from django_hilo.rest_framework.counters import tag_of


class CounterFilter(BaseFilterBackend):
    """Keep the counters that ``?collection=`` and ``?node_tag=`` ask for."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: Any
    ) -> QuerySet[Any]:
        """Return the rows that are asked for."""
        if "collection" in view.query:
            queryset = queryset.filter(collection=view.query["collection"].lower())
        if "node_tag" in view.query:
            queryset = queryset.filter(node_tag=tag_of(view.query["node_tag"]))
        return queryset


class CounterOrdering(OrderingFilter):
    """Order as ``?ordering=`` asks, and by the key, so that pages never overlap."""

    def get_ordering(self, request: Any, queryset: Any, view: Any) -> tuple[str, ...]:
        """Return the fields to order by."""
        return (*(super().get_ordering(request, queryset, view) or ()), "pk")
