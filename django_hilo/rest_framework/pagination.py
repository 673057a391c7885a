from __future__ import annotations

from rest_framework.pagination import PageNumberPagination


class CounterPagination(PageNumberPagination):
    """100 rows a page, or as many as ``?page_size=`` says, up to 1000."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
