"""Admin pages for a model whose rows are on several databases.

Each page, link and history entry names the database of its object.
"""

# Django's admin classes take no type arguments at run time.
# mypy: allow-any-generics
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import DataError, Error, models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo.admin.qualified_keys import home_databases, qualify, split
from django_hilo.conf import settings

PARAMETER = "database"
_SHOWN = 60  # characters of what was asked for, in messages
_FILTERS = "_changelist_filters"  # as Django's admin names them in its URLs


def unreadable(alias: str, error: Exception) -> str:
    """Return the message about a database that raised an error."""
    return gettext(
        "The database “%(alias)s” gave an error: %(error)s. Make sure it is running "
        "and run: python manage.py migrate --database=%(alias)s"
    ) % {"alias": alias, "error": error}


class DatabaseFilter(admin.SimpleListFilter):
    """The switch between databases; `DatabasesAdmin.get_queryset` follows it."""

    title = _("database")
    parameter_name = PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = model_admin.databases()
        return [(name, name) for name in names] if len(names) > 1 else []

    def queryset(self, request: HttpRequest, queryset: Any) -> None:
        return None

    def choices(self, changelist: Any) -> Iterator[Any]:
        chosen = self.value() or home_databases()[0]
        for alias, title in self.lookup_choices:
            yield {
                "selected": alias == chosen,
                "query_string": changelist.get_query_string({PARAMETER: alias}),
                "display": title,
            }


class DatabasesForm(forms.ModelForm):
    """A form whose new object may be for another database than the first."""

    @property
    def database(self) -> str:
        """The database that a new object shall be on."""
        return str(self.cleaned_data.get(PARAMETER) or home_databases()[0])

    def clean_collection(self) -> str:
        return str(self.cleaned_data["collection"]).lower()

    def validate_unique(self) -> None:
        # Django would look into the first database only.
        names = [name for name in ("collection", "node_tag") if name in self.fields]
        key = {name: self.cleaned_data.get(name) for name in names}
        if not self.instance._state.adding or None in key.values():
            return
        rows = self._meta.model._default_manager.using(self.database)
        try:
            if rows.filter(**key).exists():
                text = gettext(
                    "“%(key)s” exists on “%(database)s” already. Change it there."
                )
                shown = "/".join(map(str, key.values()))
                known = {"key": shown, "database": self.database}
                self.add_error(names[0], text % known)
        except Error as error:
            self.add_error(None, unreadable(self.database, error))


class DatabasesAdmin(admin.ModelAdmin):
    """A ModelAdmin that reaches the rows of every database that may hold counters."""

    form: type[DatabasesForm] = DatabasesForm
    list_filter: ClassVar[Any] = (DatabaseFilter,)
    # The fields of the page that adds an object.
    added: ClassVar[tuple[str, ...]]

    class Media:
        css = {"all": ["django_hilo/admin.css"]}

    def databases(self) -> list[str]:
        """Return the databases whose rows are shown, that of `home_databases` first."""
        return home_databases()

    @admin.display(description=_("database"))
    def database(self, obj: models.Model) -> str:
        return str(obj._state.db)

    def several(self) -> list[str]:
        """Return the field that names the database, if there is a choice."""
        return [PARAMETER] if len(self.databases()) > 1 else []

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": [*self.several(), *self.added]})]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None and self.several():
            made = {PARAMETER: self._database_field(request)}
            kwargs["form"] = type("AddForm", (kwargs.get("form", self.form),), made)
        return super().get_form(request, obj, change, **kwargs)

    def form_field(
        self, request: HttpRequest, name: str, field: models.Field, **kwargs: Any
    ) -> Any:
        """Make a form field as the theme of this admin makes those of models."""
        field.set_attributes_from_name(name)
        return self.formfield_for_dbfield(field, request, **kwargs)

    def _database_field(self, request: HttpRequest) -> Any:
        field: models.Field = models.CharField(
            _("database"),
            choices=[(name, name) for name in self.databases()],
            default=self.chosen_database(request),
        )
        return self.form_field(request, PARAMETER, field)

    def chosen_database(self, request: HttpRequest) -> str:
        """Return the database that the switch of a request names."""
        names = self.databases()
        given = request.GET.get(PARAMETER) or QueryDict(request.GET.get(_FILTERS)).get(
            PARAMETER
        )
        return given if given in names else names[0]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).using(self.chosen_database(request))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        alias = self.chosen_database(request)
        initial = {PARAMETER: alias, "node_tag": settings.node_tag(alias)}
        return {**initial, **super().get_changeform_initial_data(request)}

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        alias, key = split(object_id)
        if alias not in self.databases():
            return None
        try:
            found = self.get_queryset(request).using(alias).filter(pk=key).first()
        except (DataError, ValueError):
            return None  # no text that a key can be, such as one with NUL
        except Error as error:
            self.message_user(request, unreadable(alias, error), messages.ERROR)
            return None
        return qualify(found) if found else None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        class QualifyingChangeList(super().get_changelist(request, **kwargs)):  # type: ignore[misc] # known at run time
            def url_for_result(self, result: Any) -> str:
                return str(super().url_for_result(qualify(copy(result))))

        return QualifyingChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        names = self.databases()
        asked = request.GET.get(PARAMETER, names[0])
        if asked not in names:
            text = gettext("There are no counters on a database “%(alias)s”.") % {
                "alias": Truncator(asked).chars(_SHOWN)
            }
            return self._refused(request, text, self._list_of(names[0]))
        context = dict(extra_context or {})
        if self.several():
            context["subtitle"] = gettext("Database: %(alias)s") % {"alias": asked}
        try:
            return super().changelist_view(request, context)
        except (Error, ValueError) as error:
            if self._is_readable(asked):
                if request.method == "POST":
                    text = gettext(
                        "An error stopped this: %(error)s. What was done before it "
                        "stays: look at the counters before you repeat it."
                    )
                else:
                    text = gettext("This filter is not valid: %(error)s")
                text %= {"error": error}
                return self._refused(request, text, self._list_of(asked))
            readable = next(filter(self._is_readable, names), None)
            index = reverse("admin:index", current_app=self.admin_site.name)
            url = self._list_of(readable) if readable else index
            return self._refused(request, unreadable(asked, error), url)

    def _is_readable(self, alias: str) -> bool:
        try:
            self.model._default_manager.using(alias).exists()
        except Error:
            return False
        return True

    def _refused(self, request: HttpRequest, text: str, url: str) -> HttpResponse:
        self.message_user(request, text, messages.ERROR)
        return HttpResponseRedirect(url)

    def _list_of(self, alias: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        url = reverse(name, current_app=self.admin_site.name)
        return f"{url}?{urlencode({PARAMETER: alias})}"

    def get_preserved_filters(self, request: HttpRequest) -> str:
        preserved = super().get_preserved_filters(request)
        match = request.resolver_match
        if preserved or match is None or "object_id" not in match.kwargs:
            return preserved
        # Who came by a link from elsewhere goes on to the list of this database.
        alias, _key = split(unquote(match.kwargs["object_id"]))
        if alias == home_databases()[0]:
            return preserved
        return urlencode({_FILTERS: urlencode({PARAMETER: alias})})

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context["show_save_and_add_another"] = context["original"] is None
        return super().render_change_form(request, context, *args, **kwargs)

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> Any:
        if obj._state.db == self.chosen_database(request):
            return super().response_post_save_add(request, obj)
        return HttpResponseRedirect(self._list_of(obj._state.db))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        return super().get_deleted_objects([qualify(copy(o)) for o in objs], request)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        return super().log_deletions(request, [qualify(copy(o)) for o in queryset])  # type: ignore[arg-type] # any iterable does
