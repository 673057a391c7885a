"""Pages, filters and order of the lists."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.filters import BaseFilterBackend, OrderingFilter
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from django_hilo.rest_framework.lookup import tag_of


class CounterPagination(PageNumberPagination):
    """100 rows a page, or as many as ``?page_size=`` says, up to 1000."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class CounterFilter(BaseFilterBackend):
    """Keep the counters that ``?collection=`` and ``?node_tag=`` ask for."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: Any
    ) -> QuerySet[Any]:
        if "collection" in view.query:
            queryset = queryset.filter(collection=view.query["collection"].lower())
        if "node_tag" in view.query:
            queryset = queryset.filter(node_tag=tag_of(view.query["node_tag"]))
        return queryset


class CounterOrdering(OrderingFilter):
    """Order as ``?ordering=`` asks, and by the key, so that pages never overlap."""

    def get_ordering(self, request: Any, queryset: Any, view: Any) -> tuple[str, ...]:
        return (*(super().get_ordering(request, queryset, view) or ()), "pk")
