"""Admin pages of a number that is changed under a lock, and not by saving a row."""

# mypy: allow-any-generics
from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import DatabaseError, models
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo.admin.databases import DatabasesAdmin, DatabasesForm
from django_hilo.admin.qualified_keys import qualify, split
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import MAX_NUMBER


def grouped(number: int) -> str:
    """Return a number with separators of thousands, whatever the settings say."""
    return number_format(number, force_grouping=True)


class ChangeNumberForm(DatabasesForm):
    """Changes the number of a counter; the instance stays as it was loaded."""

    number: ClassVar[str]

    @property
    def seen(self) -> int:
        """The number as the page showed it, which says what somebody means."""
        stored: int = getattr(self.instance, self.number)
        try:
            return int(self.data.get(self.add_initial_prefix(self.number), stored))
        except ValueError:
            return stored

    def _post_clean(self) -> None:
        pass


class NumberAdmin(DatabasesAdmin):
    """A `DatabasesAdmin` whose pages change one number of a row, named ``number``.

    Each has a column ``{number}_number`` that shows it.
    """

    number: ClassVar[str]
    change_form: ClassVar[type[ChangeNumberForm]]
    # Returns the fields that use a counter.
    fields_using: Callable[[Any], list[Any]]
    # Returns the read-only fields of a page.
    shown: Callable[[HttpRequest], list[str]]
    # Sets the number for (request, obj, form, number), of a new counter too, and
    # returns the row as it is then. form.initial gets the number found under the lock.
    set_number: Callable[[HttpRequest, Any, Any, int], models.Model]
    # Returns the history's text about a change from one number to another.
    change_message: Callable[[int, int], str]
    search_fields = ("collection",)
    search_help_text = _("Search by collection")

    @admin.display(description=_("collection"), ordering="collection")
    def collection_name(self, counter: Any) -> str:
        name = split(counter.collection)[1]  # a gapless counter's key
        shown = [field.collection_name for field in self.fields_using(counter)]
        return next((each for each in shown if each.lower() == name), name)

    @admin.display(description=_("used by"))
    def used_by(self, counter: Any) -> str:
        labels = {field.model._meta.label for field in self.fields_using(counter)}
        return ", ".join(sorted(labels)) or gettext("no model")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return super().get_fieldsets(request)
        changed = [f"{self.number}_number"]
        if self.has_change_permission(request, obj):
            changed = [self.number, *self.change_form.declared_fields]
        return [
            (None, {"fields": changed}),
            (
                gettext("The counter"),
                {"fields": [*self.several(), *self.shown(request)]},
            ),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ()
        return ("database", f"{self.number}_number", *self.shown(request))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj and self.has_change_permission(request, obj):
            kwargs["form"] = self.change_form
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            start = form.base_fields[self.number]
            start.label = gettext("Start after")
            start.help_text = gettext("The first id is one higher; 0 starts at 1.")
        return form

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == self.number:
            bounds = {"min_value": 0, "max_value": MAX_NUMBER}
            # The number that was seen comes back with the form.
            kwargs = {**bounds, "show_hidden_initial": True, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        number = form.cleaned_data[self.number]
        if change and number == form.seen:
            obj.is_unchanged = True
            return
        # The form's message and history need the row as it is now.
        vars(obj).update(vars(qualify(self.set_number(request, obj, form, number))))

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        old, new = form.initial.get(self.number), getattr(form.instance, self.number)
        if add:
            return gettext("Started after %(number)s.") % {"number": grouped(new)}
        return self.change_message(old, new) if new != old else []

    def response_change(self, request: HttpRequest, obj: Any) -> Any:
        if not getattr(obj, "is_unchanged", False):
            return super().response_change(request, obj)
        self.message_user(request, gettext("The number was not changed."))
        if "_continue" in request.POST:
            return HttpResponseRedirect(request.get_full_path())
        return self.response_post_save_change(request, obj)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if set(context["adminform"].form.errors) == {"confirmed"}:
            # A question, and no error that the page should speak of.
            context["errors"] = None
            text = gettext("Nothing was changed yet: confirm the change, or leave.")
            self.message_user(request, text, messages.WARNING)
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self.or_refused(super().changeform_view, request, *args, **kwargs)

    def or_refused(
        self, view: Callable[..., Any], request: HttpRequest, *args: Any, **kwargs: Any
    ) -> Any:
        """Return the answer of a view, or show its page again with what went wrong."""
        try:
            return view(request, *args, **kwargs)
        except (HiLoError, DatabaseError) as error:
            if request.method != "POST":
                raise
            return self._refused(request, str(error), request.get_full_path())
