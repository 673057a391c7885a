"""What can be done to the counters that are selected in the list."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import edit_counter
from django_hilo.admin.databases import qualify
from django_hilo.admin.form_pages import form_page
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.models import HiLoDocument


def raised(old: int, new: int) -> str:
    """Return what messages and history say of a raise."""
    return gettext("Raised Max from %(old)s to %(new)s.") % {"old": old, "new": new}


@admin.action(
    permissions=["change"],
    description=_("Raise Max to the highest id in the tables"),
)
def raise_to_highest(model_admin: Any, request: HttpRequest, queryset: Any) -> None:
    """Raise each selected counter to the highest number that its tables hold."""
    for document in queryset:
        tables = edit_counter.tables_of(document)
        for table in tables:
            if table.error:
                text = gettext("“%(counter)s”: %(model)s cannot be read: %(error)s")
                known = {"model": table.model._meta.label, "error": table.error}
                _tell(model_admin, request, document, text, messages.ERROR, **known)
        highest = max(tables, key=lambda table: table.number, default=None)
        if highest is None:
            text = gettext(
                "“%(counter)s”: no model uses it, so there is nothing to do."
            )
            _tell(model_admin, request, document, text, messages.WARNING)
        elif highest.number <= document.max:
            if highest.number:
                edit_counter.keep_over(document, highest.number)
            text = gettext(
                "“%(counter)s”: nothing to do. Max is %(max)s, the highest id is "
                "%(id)s."
            )
            known = {"max": document.max, "id": highest.id or pgettext("an id", "none")}
            _tell(model_admin, request, document, text, messages.INFO, **known)
        else:
            _raise(model_admin, request, document, highest.number)


def _raise(
    model_admin: Any, request: HttpRequest, document: HiLoDocument, number: int
) -> None:
    try:
        row = edit_counter.raise_max(document, number, user=request.user)
    except HiLoError as error:
        text = gettext("“%(counter)s”: %(error)s")
        _tell(model_admin, request, document, text, messages.ERROR, error=error)
        return
    done = raised(document.max, row.max)
    model_admin.log_change(request, qualify(row), done)
    text = gettext("“%(counter)s”: %(done)s")
    _tell(model_admin, request, document, text, messages.SUCCESS, done=done)


@admin.action(
    permissions=["take_hilo_ids"],
    description=_("Reserve a block of numbers for manual use"),
)
def reserve_block(
    model_admin: Any, request: HttpRequest, queryset: Any
) -> HttpResponse | None:
    """Ask how many numbers, then reserve as many of each selected counter.

    The answer to the reservation is a redirect, so that a reload takes no more.
    """
    form = _block_form(model_admin, request)
    if not form.is_bound or not form.is_valid():
        return _block_page(model_admin, request, list(queryset), form)
    for document in queryset:
        _reserve(model_admin, request, document, form.cleaned_data["size"])
    return None


def _block_form(model_admin: Any, request: HttpRequest) -> forms.Form:
    size = model_admin.form_field(
        request,
        "size",
        models.BigIntegerField(),
        label=gettext("How many numbers"),
        min_value=1,
        max_value=settings.MAX_FLOOR_JUMP,
    )
    data = request.POST if "size" in request.POST else None
    made: forms.Form = type("BlockForm", (forms.Form,), {"size": size})(data)
    return made


def _block_page(
    model_admin: Any,
    request: HttpRequest,
    documents: list[HiLoDocument],
    form: forms.Form,
) -> HttpResponse:
    selected = [(helpers.ACTION_CHECKBOX_NAME, str(d.pk)) for d in documents]
    return form_page(
        model_admin,
        request,
        "block.html",
        form,
        title=gettext("Reserve a block of numbers for manual use"),
        hidden=[("action", "reserve_block"), *selected],
        button=pgettext("a button", "Reserve"),
        counters=[
            {"counter": str(qualify(d)), "next": str(d.next_low)} for d in documents
        ],
    )


def _reserve(
    model_admin: Any, request: HttpRequest, document: HiLoDocument, size: int
) -> None:
    try:
        target = edit_counter.target_of(document)
        block = edit_counter.lend_range(target, size, user=request.user).range
    except HiLoError as error:
        text = gettext("“%(counter)s”: no block was reserved. %(error)s")
        _tell(model_admin, request, document, text, messages.ERROR, error=error)
        return
    known = {
        "low": block.low,
        "high": block.high,
        "first": edit_counter.id_at(document, block.low),
        "last": edit_counter.id_at(document, block.high),
    }
    model_admin.log_change(
        request,
        qualify(document),
        gettext(
            "Reserved the block %(low)s to %(high)s for manual use: %(first)s to "
            "%(last)s."
        )
        % known,
    )
    text = gettext(
        "“%(counter)s”: the block %(low)s to %(high)s is yours, as ids %(first)s to "
        "%(last)s. Nobody else will ever give these numbers. The history of the "
        "counter keeps this."
    )
    _tell(model_admin, request, document, text, messages.SUCCESS, **known)


def _tell(
    model_admin: Any,
    request: HttpRequest,
    document: HiLoDocument,
    text: str,
    level: int,
    **known: Any,
) -> None:
    counter = str(qualify(document))
    model_admin.message_user(request, text % {"counter": counter, **known}, level)
