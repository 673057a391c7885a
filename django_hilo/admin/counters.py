"""The admin of counters: a thin face of `django_hilo._operations.edit_counter`."""

# mypy: allow-any-generics
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.db import models
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import edit_counter, report, used_counters
from django_hilo._operations.locations import served_by
from django_hilo.admin.actions import raise_to_highest, raised, reserve_block
from django_hilo.admin.confirmation import ChangeCounterForm, effects_of
from django_hilo.admin.databases import DatabaseFilter
from django_hilo.admin.numbers import NumberAdmin, grouped
from django_hilo.admin.qualified_keys import qualify
from django_hilo.admin.series import SeriesFilter
from django_hilo.exceptions import CounterNotLowered
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument


def _part(name: str, **context: Any) -> SafeString:
    """Return a part of a page from its template."""
    return render_to_string(f"admin/django_hilo/hilodocument/{name}", context)


class NodeTagFilter(admin.SimpleListFilter):
    """The node tags that the chosen database has, the empty one too."""

    title = _("node tag")
    parameter_name = "node_tag"
    _EMPTY = "-"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by("node_tag")
        tags = rows.values_list("node_tag", flat=True).distinct()
        return [
            (tag or self._EMPTY, tag or pgettext("a node tag", "none")) for tag in tags
        ]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        tag = self.value()
        if tag is None:
            return queryset
        return queryset.filter(node_tag="" if tag == self._EMPTY else tag)


class HiLoDocumentAdmin(NumberAdmin):
    """Shows, starts, raises, lowers and deletes the counters of every database.

    Django's permissions say who may view, add, change and delete them. Reserving a
    block needs ``take_hilo_ids``, and ``view`` to get to the list. Nothing here saves
    a row: `django_hilo._operations.edit_counter` makes each change, under the lock of
    reservations.
    """

    list_display = ("collection_name", "tag", "max_number", "used_by", "last_reserved")
    ordering = ("collection", "id")
    list_filter = (DatabaseFilter, SeriesFilter, NodeTagFilter)
    number = "max"
    added = ("collection", "node_tag", "max")
    change_form = ChangeCounterForm
    actions = (raise_to_highest, reserve_block)

    def fields_using(self, counter: HiLoDocument) -> list[Any]:
        return used_counters.fields_using(counter)

    @admin.display(description=_("node tag"), ordering="node_tag")
    def tag(self, document: HiLoDocument) -> str:
        return document.node_tag or pgettext("a node tag", "none")

    @admin.display(description=_("Max"), ordering="max")
    def max_number(self, document: HiLoDocument) -> SafeString:
        text = grouped(document.max)
        return _part("max.html", number=document.max, limit=MAX_NUMBER, text=text)

    @admin.display(description=pgettext_lazy("a number", "floor"))
    def floor_number(self, document: HiLoDocument) -> str:
        return grouped(document.floor)

    @admin.display(description=_("newest range"))
    def newest_range(self, document: HiLoDocument) -> str:
        if document.size < 1:
            return pgettext("a range", "none")
        low, high = document.low, document.low + document.size - 1
        known = {"low": grouped(low), "high": grouped(high)}
        return gettext("%(low)s to %(high)s") % known

    @admin.display(description=_("used of 2^63-1"))
    def used(self, document: HiLoDocument) -> SafeString:
        return _part("used.html", number=document.max, limit=MAX_NUMBER)

    @admin.display(description=_("reserved in the last 24 hours"))
    def last_day(self, document: HiLoDocument) -> str:
        at = document.reserved_at
        if at is None or at < timezone.now() - timedelta(days=1):
            return "0"
        size = grouped(document.size)
        return gettext("at least %(size)s (newest range)") % {"size": size}

    @admin.display(description=_("last reserved"), ordering="reserved_at")
    def last_reserved(self, document: HiLoDocument) -> str:
        return _part("last_reserved.html", at=document.reserved_at)

    @admin.display(description=_("next range"))
    def next_range(self, document: HiLoDocument) -> str:
        low = document.next_low
        if low > MAX_NUMBER:
            return gettext("none: this counter has reached 2^63-1")
        least = edit_counter.counter_of(document).capacities[0]
        return gettext("%(first)s to %(last)s, or more") % {
            "first": edit_counter.id_at(document, low),
            "last": edit_counter.id_at(document, min(low + least - 1, MAX_NUMBER)),
        }

    @admin.display(description=_("highest id in the tables"))
    def highest_on_demand(self, document: HiLoDocument) -> SafeString:
        return _part("highest.html", on_demand=True)

    @admin.display(description=_("highest id in the tables"))
    def highest(self, document: HiLoDocument) -> SafeString:
        known = document.next_low - 1
        tables = edit_counter.tables_of(document, known)
        unused: str | None = None
        if tables and not any(table.error for table in tables):
            unused = grouped(max(known - sum(table.rows for table in tables), 0))
        return _part("highest.html", tables=tables, unused=unused)

    def shown(self, request: HttpRequest) -> list[str]:
        # Tables may be long, so opening the page does not read them.
        highest = "highest" if "highest" in request.GET else "highest_on_demand"
        return [
            "collection_name",
            "tag",
            "used",
            "floor_number",
            "newest_range",
            "reserved_at",
            "last_day",
            "next_range",
            "used_by",
            highest,
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        def sources() -> list[tuple[report.Row, str]]:  # read only if it is shown
            rows = report.sources(served_by(self.chosen_database(request)))
            return [(row, "" if row["error"] else grouped(row["max"])) for row in rows]

        context = {"sources": sources, **(extra_context or {})}
        return super().changelist_view(request, context)

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        # ?ticket__startswith= would give the secret away letter by letter.
        is_secret = lookup.partition("__")[0] == "ticket"
        return not is_secret and super().lookup_allowed(lookup, value, request)

    def has_take_hilo_ids_permission(self, request: HttpRequest) -> bool:
        """Whether the user may take numbers for themselves."""
        return bool(request.user.has_perm("django_hilo.take_hilo_ids"))

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:
        # Django 6.1 looks for this parameter by its name; 5.2 does not know of it.
        where = () if action_location is None else (action_location,)
        actions = super().get_actions(request, *where)
        # Counters are deleted one by one: each needs a look at the tables and a
        # confirmation of its own, which this action would pass by.
        actions.pop("delete_selected", None)
        return actions

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if "confirmed" in form.base_fields:
            box = self.form_field(request, "confirmed", models.BooleanField())
            form.base_fields["confirmed"].widget = box.widget
        return form

    def set_number(
        self, request: HttpRequest, obj: Any, form: Any, number: int
    ) -> HiLoDocument:
        user, typed = request.user, form.cleaned_data
        if obj._state.adding:
            key = typed["collection"], typed["node_tag"]
            return edit_counter.create_counter(
                *key, number, using=form.database, user=user
            )
        if number < form.seen:
            return edit_counter.lower_max(obj, number, state=typed["state"], user=user)
        row = edit_counter.raise_max(obj, number, user=user)
        form.initial["max"] = obj.max
        return row

    def change_message(self, old: int, new: int) -> str:
        if new > old:
            return raised(old, new)
        return gettext(
            "Lowered Max from %(old)s to %(new)s; confirmed that every process that "
            "draws from the counter is stopped."
        ) % {"old": grouped(old), "new": grouped(new)}

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> Any:
        document = self.get_object(request, unquote(object_id))
        context = dict(extra_context or {})
        if document:
            context["state"] = edit_counter.state_of(document)
            context["max"] = grouped(document.max)
        return self.or_refused(super().delete_view, request, object_id, context)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        [document] = objs
        _deleted, count, perms, _protected = super().get_deleted_objects(objs, request)
        try:
            return effects_of(document, 0, lowers=True), count, perms, []
        except CounterNotLowered as error:
            return [], count, perms, [str(error)]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        if "confirmed" not in request.POST:
            raise CounterNotLowered(
                gettext("Stop every process first, then tick the box.")
            )
        state = request.POST.get("state", "")
        edit_counter.delete_counter(obj, state=state, user=request.user)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        [document] = queryset
        text = gettext(
            "Deleted at Max %(max)s; confirmed that every process that draws from the "
            "counter is stopped."
        ) % {"max": grouped(document.max)}
        user: Any = request.user
        return LogEntry.objects.log_actions(
            user.pk, [qualify(document)], DELETION, text, single_object=True
        )
