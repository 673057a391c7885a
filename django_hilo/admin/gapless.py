"""The admin of gapless counters: they are shown, started and raised."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import Error
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.target import fields_of
from django_hilo._operations import edit_counter
from django_hilo._operations.table_scan import (
    aliases,
    gapless_fields_of,
    may_have_table,
)
from django_hilo.admin.databases import (
    DatabaseFilter,
    home_databases,
    key_of,
    qualify,
    unreadable,
)
from django_hilo.admin.numbers import ChangeNumberForm, NumberAdmin, NumberForm
from django_hilo.conf import settings
from django_hilo.exceptions import CounterNotLowered
from django_hilo.identifiers import MAX_NUMBER, id_start
from django_hilo.models import GaplessCounter


class GaplessForm(NumberForm):
    """Both forms: with what the database refused."""

    number = "last"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.refusal and "last" in cleaned:
            self.add_error("last", str(self.refusal))
        return cleaned


class AddGaplessForm(GaplessForm):
    """Starts a counter that does not exist yet."""

    def validate_unique(self) -> None:
        # Django would look into the first database only.
        collection = self.cleaned_data.get("collection", "").lower()
        rows = GaplessCounter.objects.using(self.database).filter(pk=collection)
        try:
            if rows.exists():
                text = gettext(
                    "“%(collection)s” has gapless numbers on “%(database)s” already. "
                    "Change them there."
                )
                known = {"collection": collection, "database": self.database}
                self.add_error("collection", text % known)
        except Error as error:
            self.add_error(None, unreadable(self.database, error))


class ChangeGaplessForm(GaplessForm, ChangeNumberForm):
    """Raises the last number; what somebody means is told by the one that they saw."""

    def clean_last(self) -> int:
        """Refuse what would lower the number, be it by now only."""
        number: int = self.cleaned_data["last"]
        known = {"collection": key_of(self.instance), "number": number}
        if number < self.seen:
            raise forms.ValidationError(
                gettext(
                    "The last number is not lowered here: numbers that are in use "
                    "would come again. If that is meant, stop every process and call "
                    "seed_gapless_number('%(collection)s', %(number)s, force=True)."
                )
                % known
            )
        if self.seen < number < self.instance.last:
            raise forms.ValidationError(
                gettext(
                    "The last number is %(last)s by now, not %(seen)s as when this "
                    "page was opened. Load the page again, and look before you change "
                    "it."
                )
                % {"last": self.instance.last, "seen": self.seen}
            )
        return number


class GaplessCounterAdmin(NumberAdmin):
    """Shows the gapless counters of every database, and starts and raises them.

    They stand where the rows are that they count, not on the home database. Nothing
    here lowers or deletes one.
    """

    list_display = ("collection_name", "last_number", "next_id", "used_by")
    list_filter = (DatabaseFilter,)
    search_fields = ("collection",)
    number = "last"

    class Media:
        css = {"all": ["django_hilo/admin.css"]}

    @admin.display(description=_("collection"), ordering="collection")
    def collection_name(self, counter: GaplessCounter) -> str:
        return key_of(counter)

    @admin.display(description=_("last number"), ordering="last")
    def last_number(self, counter: GaplessCounter) -> str:
        return str(counter.last)

    @admin.display(description=_("next id"))
    def next_id(self, counter: GaplessCounter) -> str:
        if counter.last == MAX_NUMBER:
            return gettext("none: this counter has reached 2^63-1")
        collection = key_of(counter)
        fields = _fields_of(collection)
        name = fields[0].collection_name if fields else collection
        return f"{id_start(name, settings.SEPARATOR, '')}{counter.last + 1}"

    @admin.display(description=_("used by"))
    def used_by(self, counter: GaplessCounter) -> str:
        labels = {f.model._meta.label for f in _fields_of(key_of(counter))}
        return ", ".join(sorted(labels)) or gettext("no model")

    @admin.display(description=_("database"))
    def database(self, counter: GaplessCounter) -> str:
        return str(counter._state.db)

    def databases(self) -> list[str]:
        found = [name for name in aliases() if may_have_table(name, GaplessCounter)]
        return list(dict.fromkeys([home_databases()[0], *found]))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        several = ["database"] if len(self.databases()) > 1 else []
        if obj is None:
            return [(None, {"fields": [*several, "collection", "last"]})]
        last = "last" if self.has_change_permission(request, obj) else "last_number"
        shown = [*several, "collection_name", "next_id", "used_by"]
        return [
            (None, {"fields": [last]}),
            (gettext("The counter"), {"fields": shown}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ()
        return ("last_number", "database", "collection_name", "next_id", "used_by")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        base = ChangeGaplessForm if obj else AddGaplessForm
        kwargs["form"] = self.form_of(request, obj, base)
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            form.base_fields["last"].label = gettext("Start after")
        return form

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        number = form.cleaned_data["last"]
        if change and number == form.seen:
            return
        using = obj._state.db if change else form.database
        collection = key_of(obj).lower()
        # A seed never lowers: what was taken since the form was checked stays taken.
        old, new = edit_counter.seed_gapless(
            collection, number, using=using, user=request.user
        )
        if new > number:
            raise CounterNotLowered(
                gettext(
                    "The last number of %(collection)r on %(database)r is %(last)s by "
                    "now."
                )
                % {"collection": collection, "database": using, "last": new}
            )
        form.initial["last"] = old  # for the history
        row = GaplessCounter(collection=collection, last=new)
        row._state.db, row._state.adding = using, False
        vars(obj).update(vars(qualify(row)))

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        old, new = form.initial.get("last"), form.instance.last
        if add:
            return gettext("Started after %(last)s.") % {"last": new}
        if new > old:
            return gettext("Raised the last number from %(old)s to %(new)s.") % {
                "old": old,
                "new": new,
            }
        return []


def _fields_of(collection: str) -> list[Any]:
    return [*gapless_fields_of(collection), *fields_of(collection)]
