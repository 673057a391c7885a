"""What stands after the ``?`` of an address."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import serializers

from django_hilo.models import validate_collection
from django_hilo.rest_framework.fields import NumberField, WholeNumberField
from django_hilo.rest_framework.pagination import CounterPagination
from django_hilo.tables import homes

ORDERINGS = ["collection", "node_tag", "max", "reserved_at"]


class DatabaseQuery(serializers.Serializer[Any]):
    """The database of the counters."""

    database = serializers.CharField(
        required=False,
        help_text=gettext_lazy(
            "The alias of a database that holds counters; without it the routers "
            "decide."
        ),
    )

    def validate_database(self, database: str) -> str:
        """Refuse what is no home of counters, and name those that are."""
        aliases = homes()
        if database not in aliases:
            raise serializers.ValidationError(
                _("%(database)r holds no counters; choose among: %(aliases)s.")
                % {"database": database, "aliases": ", ".join(aliases)}
            )
        return database


class PageQuery(DatabaseQuery):
    """The page of a list."""

    page = NumberField(least=1, required=False)
    page_size = WholeNumberField(
        min_value=1, max_value=CounterPagination.max_page_size, required=False
    )


class DocumentsQuery(PageQuery):
    """Which counters to list, and how."""

    collection = serializers.CharField(
        required=False,
        max_length=100,
        validators=[validate_collection],
        help_text=gettext_lazy("Only counters of this collection, in whatever case."),
    )
    node_tag = serializers.RegexField(
        r"^(-|[A-Z]{1,4})\Z",
        required=False,
        help_text=gettext_lazy("Only counters of this node; - for those without one."),
    )
    search = serializers.CharField(
        required=False,
        trim_whitespace=False,
        help_text=gettext_lazy("Parts of collections or node tags."),
    )
    ordering = serializers.ChoiceField(
        choices=[*ORDERINGS, *(f"-{name}" for name in ORDERINGS)],
        required=False,
        help_text=gettext_lazy("By what to order; downwards after a minus."),
    )
