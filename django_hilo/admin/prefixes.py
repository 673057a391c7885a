"""The admin of server prefixes, with a preview of the next id."""

# mypy: allow-any-generics
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.db import Error
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import server_prefixes
from django_hilo.admin.databases import (
    DatabaseFilter,
    DatabasesAdmin,
    home_databases,
    key_of,
    qualify,
    unreadable,
)
from django_hilo.admin.examples import Example, examples, newest_first
from django_hilo.conf import settings
from django_hilo.models import HiLoDocument, ServerPrefix


class ServerPrefixForm(forms.ModelForm):
    """A server prefix; a new one may be for another database than the first."""

    @property
    def database(self) -> str:
        """The database that a new prefix shall be on."""
        return str(self.cleaned_data.get("database") or home_databases()[0])

    def validate_unique(self) -> None:
        # Django would look into the first database only.
        tag = self.cleaned_data.get("node_tag")
        if not self.instance._state.adding or not tag:
            return
        rows = ServerPrefix.objects.using(self.database).filter(pk=tag)
        try:
            if rows.exists():
                text = gettext(
                    "The node “%(tag)s” has a prefix on “%(database)s” already."
                )
                known = {"tag": tag, "database": self.database}
                self.add_error("node_tag", text % known)
        except Error as error:
            self.add_error(None, unreadable(self.database, error))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        tag = cleaned.get("node_tag") or key_of(self.instance)
        if tag and "prefix" in cleaned:
            server_prefixes.check_prefix_is_free(tag, cleaned["prefix"])
        return cleaned


class ServerPrefixAdmin(DatabasesAdmin):
    """Shows and sets the server prefixes of every database."""

    form = ServerPrefixForm
    list_display = ("tag", "prefix", "example")
    list_filter = (DatabaseFilter,)
    search_fields = ("node_tag", "prefix")

    class Media:
        css = {"all": ["django_hilo/admin.css"]}
        js = ["django_hilo/server_prefix_preview.js"]

    @admin.display(description=_("node tag"), ordering="node_tag")
    def tag(self, row: ServerPrefix) -> str:
        return key_of(row)

    @admin.display(description=_("next id, for example"))
    def example(self, row: Any) -> str:
        number = max(row.example_max or 0, row.example_floor or 0) + 1
        found = Example.of(row.example_collection, number)
        return found.id_with(row.prefix, key_of(row))

    @admin.display(description=_("database"))
    def database(self, row: ServerPrefix) -> str:
        return str(row._state.db)

    def get_queryset(self, request: HttpRequest) -> Any:
        counters = newest_first(HiLoDocument.objects.all())
        mine = counters.filter(node_tag=OuterRef("node_tag"))
        return (
            super()
            .get_queryset(request)
            .annotate(
                example_collection=Subquery(mine.values("collection")[:1]),
                example_max=Subquery(mine.values("max")[:1]),
                example_floor=Subquery(mine.values("floor")[:1]),
            )
        )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        several = ["database"] if len(home_databases()) > 1 else []
        if obj is None:
            return [(None, {"fields": [*several, "node_tag", "prefix"]})]
        return [(None, {"fields": [*several, "tag", "prefix", "example"]})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else ("database", "tag", "example")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None and len(home_databases()) > 1:
            made = {"database": self.database_field(request)}
            kwargs["form"] = type("ServerPrefixForm", (self.form,), made)
        form = super().get_form(request, obj, change, **kwargs)
        if "prefix" in form.base_fields:
            field = form.base_fields["prefix"]
            field.help_text = gettext(
                "Empty, or ends in a character that is no digit: NorthServer/ gives "
                "orders/NorthServer/1. Holds from each process's next range on; ids of "
                "ranges that processes hold now do not have it."
            )
            field.widget.attrs.update(self._preview(obj))
        return form

    def _preview(self, row: Any) -> dict[str, str]:
        names = home_databases() if row is None else [row._state.db]
        return {
            "data-hilo-examples": examples(names),
            "data-hilo-database": names[0],
            "data-hilo-node-tag": "" if row is None else key_of(row),
            "data-hilo-show-node-tag": "yes" if settings.SHOW_NODE_TAG else "no",
            "data-hilo-next": gettext("Next id: {id}"),
            "data-hilo-wrong": gettext(
                "Not a prefix: it must end in a character that is no digit, and hold "
                "no space, $ or |."
            ),
        }

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        using = obj._state.db if change else form.database
        tag = key_of(obj)
        row = server_prefixes.set_prefix(
            tag, obj.prefix, using=using, user=request.user
        )
        vars(obj).update(vars(qualify(row)))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        deleted, *rest = super().get_deleted_objects(objs, request)
        note = gettext("Ids of these nodes have no prefix from the next range on.")
        return ([*deleted, note], *rest)  # type: ignore[return-value]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._delete(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            self._delete(request, row)

    def _delete(self, request: HttpRequest, row: Any) -> None:
        using, tag = row._state.db, key_of(row)
        ServerPrefix.objects.using(using).filter(pk=tag).delete()
        server_prefixes.tell_prefix(
            tag, row.prefix, None, using=using, user=request.user
        )
