"""What the admin shows of a counter, in its list and on its page.

Numbers are shown as plain digits, whatever USE_THOUSAND_SEPARATOR says: they are parts
of ids, and get copied.
"""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.target import fields_of
from django_hilo._operations import edit_counter
from django_hilo._operations.table_scan import aliases_served_by, fields_on
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument

_BREAK = mark_safe("<br>")


def _unreadable(error: str) -> str:
    return gettext("cannot be read: %(error)s") % {"error": error}


class CounterColumns(admin.ModelAdmin):
    """The columns and read-only fields of a counter."""

    @admin.display(description=_("collection"), ordering="collection")
    def collection_name(self, document: HiLoDocument) -> str:
        return document.collection

    @admin.display(description=_("node tag"), ordering="node_tag", empty_value="-")
    def tag(self, document: HiLoDocument) -> str | None:
        return document.node_tag or None

    @admin.display(description=_("Max"), ordering="max")
    def max_number(self, document: HiLoDocument) -> str:
        return str(document.max)

    @admin.display(description=pgettext_lazy("a number", "floor"), ordering="floor")
    def floor_number(self, document: HiLoDocument) -> str:
        return str(document.floor)

    @admin.display(description=_("newest range"), ordering="low")
    def newest_range(self, document: HiLoDocument) -> str:
        if document.size < 1:
            return pgettext("a range", "none")
        high = document.low + document.size - 1
        return gettext("%(low)s to %(high)s") % {"low": document.low, "high": high}

    @admin.display(description=_("used by"))
    def used_by(self, document: HiLoDocument) -> str:
        labels = {f.model._meta.label for f in fields_of(document.collection)}
        return ", ".join(sorted(labels)) or gettext("no model")

    @admin.display(description=_("database"))
    def database(self, document: HiLoDocument) -> str:
        return edit_counter.database_of(document)

    @admin.display(description=_("next range"))
    def next_range(self, document: HiLoDocument) -> str:
        low = document.next_low
        if low > MAX_NUMBER:
            return gettext("none: this counter has reached 2^63-1")
        least = edit_counter.target_of(document).capacities[0]
        return gettext("%(first)s to %(last)s, or more") % {
            "first": edit_counter.id_at(document, low),
            "last": edit_counter.id_at(document, min(low + least - 1, MAX_NUMBER)),
        }

    @admin.display(description=_("used by"))
    def used_by_tables(self, document: HiLoDocument) -> Any:
        fields = fields_of(document.collection)
        lines = [
            gettext("%(model)s.%(field)s on %(database)s")
            % {"model": f.model._meta.label, "field": f.name, "database": alias}
            for alias in aliases_served_by(edit_counter.database_of(document))
            for f in fields_on(alias)
            if f in fields
        ]
        if not lines:
            return gettext("no model")
        return format_html_join(_BREAK, "{}", ((line,) for line in lines))

    @admin.display(description=_("highest id in the tables"))
    def highest_on_demand(self, document: HiLoDocument) -> Any:
        return format_html(
            '<a href="?highest=1" class="viewlink hilo-look-up">{}</a> {}',
            gettext("Look it up"),
            gettext("This reads the ids of all these tables."),
        )

    @admin.display(description=_("highest id in the tables"))
    def highest(self, document: HiLoDocument) -> Any:
        tables = edit_counter.tables_of(document)
        if not tables:
            return gettext("no model")
        lines = (
            (
                t.model._meta.label,
                t.using,
                _unreadable(t.error) if t.error else t.id or "-",
            )
            for t in tables
        )
        return format_html_join(_BREAK, "{} ({}): {}", lines)
