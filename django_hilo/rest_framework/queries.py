"""The parameters after the ``?`` of an address."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from django_hilo.identifiers import MAX_COLLECTION_LENGTH
from django_hilo.rest_framework.fields import (
    CollectionField,
    DatabaseField,
    NameField,
    QueryNumberField,
    SearchField,
)
from django_hilo.rest_framework.listing import CounterPagination

MAX_PAGE = 2**31 - 1
ORDERINGS = ["collection", "node_tag", "max", "reserved_at"]


class DatabaseQuery(serializers.Serializer[Any]):
    """The database of the counters."""

    database = DatabaseField(
        required=False,
        help_text=_("A database alias with counters. Default: the routers decide."),
    )


class PageQuery(DatabaseQuery):
    """The page of a list."""

    page = QueryNumberField(min_value=1, max_value=MAX_PAGE, required=False)
    page_size = QueryNumberField(
        min_value=1, max_value=CounterPagination.max_page_size, required=False
    )


class DocumentsQuery(PageQuery):
    """Which counters to list, and how."""

    collection = CollectionField(
        required=False,
        help_text=_("Only counters of this collection; not case-sensitive."),
    )
    node_tag = serializers.RegexField(
        r"^(-|[A-Z]{1,4})\Z",
        required=False,
        help_text=_("Only counters of this node; - for those without a node tag."),
    )
    search = SearchField(
        required=False,
        allow_blank=True,
        # Each word is a condition, and SQLite refuses a statement with a thousand.
        max_length=MAX_COLLECTION_LENGTH,
        trim_whitespace=False,
        help_text=_("Parts of collections or node tags."),
    )
    ordering = NameField(
        choices=[*ORDERINGS, *(f"-{name}" for name in ORDERINGS)],
        required=False,
        help_text=_("The sort order; prefix with a minus for descending."),
    )
