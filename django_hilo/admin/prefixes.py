"""The admin of server prefixes."""

# mypy: allow-any-generics
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import server_prefixes
from django_hilo.admin.databases import DatabasesAdmin, DatabasesForm
from django_hilo.admin.qualified_keys import key_of, qualify
from django_hilo.conf import settings
from django_hilo.identifiers import IdFormat
from django_hilo.models import ServerPrefix


class ServerPrefixForm(DatabasesForm):
    """Refuses a prefix that would make the ids of two nodes look the same."""

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
    search_fields = ("node_tag", "prefix")
    search_help_text = _("Search by node tag or prefix")
    added = ("node_tag", "prefix")

    @admin.display(description=_("node tag"), ordering="node_tag")
    def tag(self, row: ServerPrefix) -> str:
        return key_of(row)

    @admin.display(description=_("an id, for example"))
    def example(self, row: ServerPrefix) -> str:
        tag = key_of(row) if settings.SHOW_NODE_TAG else ""
        return IdFormat.of("orders", settings.SEPARATOR, row.prefix, tag).text(33)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return super().get_fieldsets(request)
        return [(None, {"fields": [*self.several(), "tag", "prefix", "example"]})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else ("database", "tag", "example")

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        using = obj._state.db if change else form.database
        row = server_prefixes.set_prefix(
            key_of(obj), obj.prefix, using=using, user=request.user
        )
        vars(obj).update(vars(qualify(row)))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        deleted, *rest = super().get_deleted_objects(objs, request)
        note = gettext("Ids of these nodes have no prefix from the next range on.")
        return ([*deleted, note], *rest)  # type: ignore[return-value] # a list, as Django's

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            server_prefixes.delete_prefix(
                key_of(row), using=row._state.db, user=request.user
            )
