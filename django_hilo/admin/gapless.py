"""The admin of gapless counters: they are shown, started and raised."""

# mypy: allow-any-generics
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.registry import fields_of, series_fields_of
from django_hilo._operations import edit_gapless
from django_hilo._operations.locations import aliases, gapless_fields_of, may_have_table
from django_hilo.admin.confirmation import ConfirmedNumberForm
from django_hilo.admin.databases import DatabaseFilter
from django_hilo.admin.numbers import NumberAdmin, grouped
from django_hilo.admin.qualified_keys import home_databases, key_of, split
from django_hilo.admin.series import SeriesFilter
from django_hilo.conf import settings
from django_hilo.exceptions import CounterNotLowered
from django_hilo.identifiers import MAX_NUMBER, IdFormat, is_counter_name
from django_hilo.models import GaplessCounter


class ChangeGaplessForm(ConfirmedNumberForm):
    """Raises the last number, after a confirmation: each skipped number is a gap."""

    number = "last"

    def clean_last(self) -> int:
        """Refuse a number under the one that the page showed."""
        number: int = self.cleaned_data["last"]
        if number < self.seen:
            raise forms.ValidationError(
                gettext(
                    "The last number is not lowered here: numbers in use would be "
                    "issued again. If you intend this, stop every process and call "
                    "seed_gapless_number('%(collection)s', %(number)s, force=True)."
                )
                % {"collection": key_of(self.instance), "number": number}
            )
        return number

    def effects(self, number: int) -> list[str]:
        known = {"collection": key_of(self.instance), "number": self.seen}
        return [
            gettext("The numbers %(first)s to %(last)s will never be assigned: a gap.")
            % {"first": grouped(self.seen + 1), "last": grouped(number)},
            gettext(
                "To undo this before the next number is taken, stop every process and "
                "call seed_gapless_number('%(collection)s', %(number)s, force=True)."
            )
            % known,
        ]

    def label_of(self, number: int) -> str:
        return gettext("Skip these numbers")


class GaplessCounterAdmin(NumberAdmin):
    """Shows the gapless counters of every database, and starts and raises them.

    They are on the databases of the rows that they count, not on the home database.
    Nothing here lowers or deletes one.
    """

    list_display = ("collection_name", "last_number", "next_id", "used_by")
    list_filter = (DatabaseFilter, SeriesFilter)
    number = "last"
    added = ("collection", "last")
    change_form = ChangeGaplessForm

    @admin.display(description=_("last number"), ordering="last")
    def last_number(self, counter: GaplessCounter) -> str:
        return grouped(counter.last)

    @admin.display(description=_("next id"))
    def next_id(self, counter: GaplessCounter) -> str:
        if counter.last == MAX_NUMBER:
            return gettext("none: this counter has reached 2^63-1")
        if is_counter_name(counter.collection):
            return str(counter.last + 1)  # how a series writes it, its rows know
        name = self.collection_name(counter)
        return IdFormat.of(name, settings.SEPARATOR).text(counter.last + 1)

    def fields_using(self, counter: GaplessCounter) -> list[Any]:
        collection = split(counter.collection)[1]
        found = [*gapless_fields_of(collection), *fields_of(collection)]
        return [*found, *series_fields_of(collection)]

    def shown(self, request: HttpRequest) -> list[str]:
        return ["collection_name", "next_id", "used_by"]

    def databases(self) -> list[str]:
        found = [name for name in aliases() if may_have_table(name, GaplessCounter)]
        return list(dict.fromkeys([home_databases()[0], *found]))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def set_number(
        self, request: HttpRequest, obj: Any, form: Any, number: int
    ) -> GaplessCounter:
        using = form.database if obj._state.adding else obj._state.db
        collection = key_of(obj)
        # A seed never lowers: what was taken since the page was opened stays taken.
        old, new = edit_gapless.seed_gapless(
            collection, number, using=using, user=request.user
        )
        if new > number:
            raise CounterNotLowered(
                gettext(
                    "The last number of %(collection)r on %(database)r is %(last)s by "
                    "now."
                )
                % {"collection": collection, "database": using, "last": grouped(new)}
            )
        form.initial["last"] = old
        row = GaplessCounter(collection=collection, last=new)
        row._state.db, row._state.adding = using, False
        return row

    def change_message(self, old: int, new: int) -> str:
        text = gettext("Raised the last number from %(old)s to %(new)s.")
        return text % {"old": grouped(old), "new": grouped(new)}
