"""The admin of gapless counters: they are shown, started and raised."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import Error, OperationalError, models
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo import steering
from django_hilo.admin.databases import (
    DatabaseFilter,
    DatabasesAdmin,
    home_databases,
    key_of,
    qualify,
    unreadable,
)
from django_hilo.conf import settings
from django_hilo.exceptions import CounterNotLowered, HiLoError
from django_hilo.identifiers import MAX_NUMBER, id_start
from django_hilo.models import GaplessCounter
from django_hilo.tables import aliases, gapless_fields_of, may_have_table
from django_hilo.targets import fields_of


class GaplessForm(forms.ModelForm):
    """Both forms: with what the database refused when the same was posted before."""

    refusal: Exception | None = None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.refusal and "last" in cleaned:
            self.add_error("last", str(self.refusal))
        return cleaned


class AddGaplessForm(GaplessForm):
    """Starts a counter that does not exist yet."""

    @property
    def database(self) -> str:
        """The database that the counter shall be on."""
        return str(self.cleaned_data.get("database") or home_databases()[0])

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


class ChangeGaplessForm(GaplessForm):
    """Raises the last number; what somebody means is told by the one that they saw."""

    @property
    def seen(self) -> int:
        """The last number as the page showed it."""
        stored: int = self.instance.last
        try:
            return int(self.data.get(self.add_initial_prefix("last"), stored))
        except ValueError:
            return stored

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

    def _post_clean(self) -> None:
        # The instance stays as it was loaded: it is changed under the lock only.
        pass


class GaplessCounterAdmin(DatabasesAdmin):
    """Shows the gapless counters of every database, and starts and raises them.

    They stand where the rows are that they count, not on the home database. Nothing
    here lowers or deletes one.
    """

    list_display = ("collection_name", "last_number", "next_id", "used_by")
    list_filter = (DatabaseFilter,)
    search_fields = ("collection",)

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
        made: dict[str, Any] = {"refusal": getattr(request, "hilo_refusal", None)}
        if obj is None and len(self.databases()) > 1:
            made["database"] = self.database_field(request)
        base: type[GaplessForm] = ChangeGaplessForm if obj else AddGaplessForm
        kwargs["form"] = type(base.__name__, (base,), made)
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            form.base_fields["last"].label = gettext("Start after")
        return form

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "last":
            bounds = {"min_value": 0, "max_value": MAX_NUMBER}
            # The number that was seen comes back with the form.
            kwargs = {**bounds, "show_hidden_initial": True, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        view = super().changeform_view
        try:
            return view(request, object_id, form_url, extra_context)
        except (HiLoError, OperationalError) as error:
            # Once more, in a transaction that sees the counter as it is now, to show
            # the form with what was typed and with the error.
            request.hilo_refusal = error  # type: ignore[attr-defined]
            return view(request, object_id, form_url, extra_context)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        number = form.cleaned_data["last"]
        if change and number == form.seen:
            return
        using = obj._state.db if change else form.database
        collection = key_of(obj).lower()
        # A seed never lowers: what was taken since the form was checked stays taken.
        old, new = steering.seed_gapless(
            collection, number, using=using, user=request.user
        )
        if new > number:
            raise CounterNotLowered(
                f"The last number of {collection!r} on {using!r} is {new} by now."
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
