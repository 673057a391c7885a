"""The admin of counters: a thin face of `django_hilo._operations.edit_counter`."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import edit_counter
from django_hilo.admin.actions import raise_to_highest, raised, reserve_block
from django_hilo.admin.columns import CounterColumns
from django_hilo.admin.confirmation import (
    Unconfirmed,
    confirmation_form,
    confirmation_page,
)
from django_hilo.admin.counter_forms import (
    AddCounterForm,
    ChangeCounterForm,
)
from django_hilo.admin.databases import (
    DatabaseFilter,
    home_databases,
    qualify,
)
from django_hilo.admin.numbers import NumberAdmin
from django_hilo.exceptions import CounterNotLowered, HiLoError
from django_hilo.models import HiLoDocument


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


class HiLoDocumentAdmin(NumberAdmin, CounterColumns):
    """Shows and steers the counters of every database.

    Django's permissions say who may view, add, change and delete them. Reserving a
    block needs ``take_hilo_ids``, and ``view`` to get to the list. Nothing here saves
    a row: `django_hilo._operations.edit_counter` makes each change, under the lock of
    reservations.
    """

    list_display = (
        "collection_name",
        "tag",
        "max_number",
        "floor_number",
        "newest_range",
        "reserved_at",
        "used_by",
    )
    list_filter = (DatabaseFilter, NodeTagFilter)
    search_fields = ("collection",)
    secrets = ("ticket",)
    number = "max"
    refusals = (HiLoError,)
    actions = (raise_to_highest, reserve_block)

    class Media:
        css = {"all": ["django_hilo/admin.css"]}
        js = ["django_hilo/max_preview.js"]

    def has_take_hilo_ids_permission(self, request: HttpRequest) -> bool:
        """Whether the user may take numbers for themselves."""
        return bool(request.user.has_perm("django_hilo.take_hilo_ids"))

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:
        # Django 6.1 tells where the actions are shown; 5.2 does not know of it.
        where = () if action_location is None else (action_location,)
        actions = super().get_actions(request, *where)
        # Counters are deleted one by one: each needs a look at the tables and a
        # confirmation of its own, which this action would pass by.
        actions.pop("delete_selected", None)
        return actions

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        several = ["database"] if len(home_databases()) > 1 else []
        if obj is None:
            return [(None, {"fields": [*several, "collection", "node_tag", "max"]})]
        may_change = self.has_change_permission(request, obj)
        shown = self._shown(request)
        return [
            (None, {"fields": ["max" if may_change else "max_number"]}),
            (gettext("The counter"), {"fields": [*several, *shown]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ()
        return ("database", "max_number", *self._shown(request))

    def _shown(self, request: HttpRequest) -> list[str]:
        # Tables may be long, so nobody reads them by just opening the page.
        highest = "highest" if "highest" in request.GET else "highest_on_demand"
        return [
            "collection_name",
            "tag",
            "floor_number",
            "newest_range",
            "reserved_at",
            "raised_by",
            "next_range",
            "used_by_tables",
            highest,
        ]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        base = ChangeCounterForm if obj else AddCounterForm
        kwargs["form"] = self.form_of(request, obj, base)
        form = super().get_form(request, obj, change, **kwargs)
        if obj and "max" in form.base_fields:
            self._explain(form.base_fields["max"], obj)
        elif not obj:
            form.base_fields["max"].label = gettext("Start after (Max)")
            form.base_fields["max"].help_text = gettext(
                "Ids start at the number over it: at 1 for 0."
            )
        return form

    def _explain(self, field: Any, document: HiLoDocument) -> None:
        field.help_text = gettext(
            "Raising is free: numbers up to the new Max will never be given. Lowering "
            "needs a confirmation and is refused while rows with higher numbers exist."
        )
        field.widget.attrs.update(
            {
                "data-hilo-max": str(document.max),
                "data-hilo-raised": gettext(
                    "Numbers {low} to {high} will never be given: a gap of {count}."
                ),
                "data-hilo-lowered": gettext(
                    "Numbers {low} to {high} would be given again: you will be asked "
                    "to confirm."
                ),
            }
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Unconfirmed as question:
            assert object_id is not None
            document = self.get_object(request, unquote(object_id))
            return self._ask_to_lower(request, document, question)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        number = form.cleaned_data["max"]
        if not change:
            row = edit_counter.create_counter(
                form.cleaned_data["collection"],
                form.cleaned_data["node_tag"],
                number,
                using=form.database,
                user=request.user,
            )
        elif form.lowers:
            row = self._lower(request, obj, form)
        elif form.raises:
            row = edit_counter.raise_max(obj, number, user=request.user)
            form.initial["max"] = obj.max  # for the history
        else:
            return
        vars(obj).update(vars(qualify(row)))

    def _lower(self, request: HttpRequest, document: Any, form: Any) -> HiLoDocument:
        number = form.cleaned_data["max"]
        posted = request.POST if form.is_confirmation else None
        question = confirmation_form(self, request, posted)
        state = edit_counter.state_of(document)
        if form.is_confirmation and not form.refusal:
            state = request.POST["state"]  # what the user saw
        if form.refusal:
            question.add_error(None, str(form.refusal))
        elif question.is_bound and question.is_valid():
            return edit_counter.lower_max(
                document, number, state=state, user=request.user
            )
        hidden = [("max", number), ("initial-max", form.seen), ("state", state)]
        raise Unconfirmed(question, number, hidden, getattr(form, "looked_at", None))

    def _ask_to_lower(
        self, request: HttpRequest, document: HiLoDocument, question: Unconfirmed
    ) -> HttpResponse:
        tables = question.tables
        return confirmation_page(
            self,
            request,
            document,
            question.form,
            number=question.number,
            tables=edit_counter.tables_of(document) if tables is None else tables,
            title=gettext("Lower Max"),
            button=gettext("Yes, lower Max"),
            hidden=question.hidden,
        )

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        old, new = form.initial.get("max"), form.instance.max
        if add:
            return gettext("Started after %(max)s.") % {"max": new}
        if new > old:
            return raised(old, new)
        if new < old:
            return gettext(
                "Lowered Max from %(old)s to %(new)s; confirmed that every process "
                "that draws from the counter is stopped."
            ) % {"old": old, "new": new}
        return []

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        document = self.get_object(request, unquote(object_id))
        if not self.has_delete_permission(request, document):
            raise PermissionDenied
        if document is None:
            return super().delete_view(request, object_id)  # says so
        question = confirmation_form(self, request, request.POST or None)
        state = request.POST.get("state", "")
        if state and question.is_valid():
            try:
                edit_counter.delete_counter(document, state=state, user=request.user)
            except HiLoError as error:
                # Asked again with the counter as it is now.
                self.message_user(request, str(error), messages.ERROR)
                return HttpResponseRedirect(request.get_full_path())
            self._log_deletion(request, document)
            return self.response_delete(request, str(document), document.pk)
        try:
            tables, refusal = edit_counter.check_unused(document, 0), ""
        except CounterNotLowered as error:
            tables, refusal = [], str(error)
        return confirmation_page(
            self,
            request,
            document,
            question,
            number=0,
            tables=tables,
            refusal=refusal,
            deletes=True,
            title=gettext("Delete counter"),
            button=gettext("Yes, delete the counter"),
            hidden=[("state", state or edit_counter.state_of(document))],
            **(extra_context or {}),
        )

    def _log_deletion(self, request: HttpRequest, document: HiLoDocument) -> None:
        LogEntry.objects.log_actions(
            request.user.pk,  # type: ignore[arg-type]
            [document],
            DELETION,
            gettext(
                "Deleted at Max %(max)s; confirmed that every process that draws from "
                "the counter is stopped."
            )
            % {"max": document.max},
        )
