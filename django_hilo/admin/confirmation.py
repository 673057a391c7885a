"""The page that asks before ids may be given a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from django_hilo._operations import edit_counter
from django_hilo._operations.table_scan import Highest
from django_hilo.admin.databases import qualify
from django_hilo.admin.form_pages import form_page
from django_hilo.models import HiLoDocument

if TYPE_CHECKING:
    from django_hilo.admin.databases import DatabasesAdmin


class Unconfirmed(Exception):
    """Max shall fall, and nobody has confirmed it yet: show the page that asks."""

    def __init__(self, form: forms.Form, number: int, hidden: Any, tables: Any) -> None:
        super().__init__()
        self.form = form
        self.number = number
        self.hidden = hidden
        self.tables = tables


def confirmation_form(
    model_admin: DatabasesAdmin, request: HttpRequest, data: Any
) -> forms.Form:
    """Make the form with the checkbox; ``data`` is what was posted, or None."""
    confirmed = model_admin.form_field(
        request,
        "confirmed",
        models.BooleanField(),
        label=_("Every process that draws from this counter is stopped"),
        required=True,
        error_messages={
            "required": _("Stop them first, then tick this box: nobody can undo it.")
        },
    )
    # A form class of its own, since a theme may choose the widget by the request.
    made: forms.Form = type(
        "ConfirmationForm", (forms.Form,), {"confirmed": confirmed}
    )(data)
    return made


def confirmation_page(
    model_admin: DatabasesAdmin,
    request: HttpRequest,
    document: HiLoDocument,
    form: forms.Form,
    *,
    number: int,
    tables: list[Highest],
    **context: Any,
) -> HttpResponse:
    """Show which ids would be given twice if Max fell to ``number``, and ask."""
    ids = None
    if document.max > number:
        ids = {
            "first": edit_counter.id_at(document, number + 1),
            "last": edit_counter.id_at(document, document.max),
        }
    return form_page(
        model_admin,
        request,
        "confirm.html",
        form,
        document=qualify(document),
        ids=ids,
        number=str(number),
        max=str(document.max),
        database=edit_counter.database_of(document),
        tables=[
            {
                "model": table.model._meta.label,
                "database": table.using,
                "id": table.id or pgettext("an id", "none"),
            }
            for table in tables
        ],
        **context,
    )
