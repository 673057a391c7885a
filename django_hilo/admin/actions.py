"""The actions on counters that are selected in the list."""

# mypy: allow-any-generics
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_hilo._operations import edit_counter, lending
from django_hilo.admin.numbers import grouped
from django_hilo.admin.qualified_keys import qualify
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.models import HiLoDocument


def raised(old: int, new: int) -> str:
    """Return the text of messages and history about a raise."""
    text = gettext("Raised Max from %(old)s to %(new)s.")
    return text % {"old": grouped(old), "new": grouped(new)}


def _report(
    model_admin: Any, request: HttpRequest, document: Any, level: int, text: str
) -> None:
    line = gettext("“%(counter)s”: %(text)s")
    known = {"counter": str(qualify(document)), "text": text}
    model_admin.message_user(request, line % known, level)


@admin.action(
    permissions=["change"], description=_("Raise Max to the highest id in the tables")
)
def raise_to_highest(model_admin: Any, request: HttpRequest, queryset: Any) -> None:
    """Raise each selected counter to the highest number in its tables."""
    for document in queryset:
        tables = edit_counter.tables_of(document)
        for table in tables:
            if table.error:
                text = gettext("%(model)s cannot be read: %(error)s") % table._asdict()
                _report(model_admin, request, document, messages.ERROR, text)
        if not tables:
            text = gettext("no model uses it, so there is nothing to do.")
            _report(model_admin, request, document, messages.WARNING, text)
            continue
        highest = max(tables, key=lambda table: table.number)
        if highest.number - document.max > settings.MAX_FLOOR_JUMP:
            text = gettext(
                "the highest id is %(id)s, more than %(jump)s above Max. Correct the "
                "row, or raise Max on the page of the counter."
            ) % {"id": highest.id, "jump": grouped(settings.MAX_FLOOR_JUMP)}
            _report(model_admin, request, document, messages.ERROR, text)
            continue
        try:
            row = edit_counter.raise_over(document, highest.number, user=request.user)
        except HiLoError as error:
            _report(model_admin, request, document, messages.ERROR, str(error))
            continue
        if row is None:
            text = gettext("nothing to do. Max is %(max)s, the highest id is %(id)s.")
            text %= {
                "max": grouped(document.max),
                "id": highest.id or pgettext("an id", "none"),
            }
            _report(model_admin, request, document, messages.INFO, text)
        else:
            text = raised(document.max, row.max)
            model_admin.log_change(request, qualify(row), text)
            _report(model_admin, request, document, messages.SUCCESS, text)


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
    form = forms.Form(request.POST if "size" in request.POST else None)
    form.fields["size"] = model_admin.form_field(
        request,
        "size",
        models.BigIntegerField(_("How many numbers")),
        min_value=1,
        max_value=settings.MAX_FLOOR_JUMP,
    )
    if form.is_bound and form.is_valid():
        for document in queryset:
            _reserve(model_admin, request, document, form.cleaned_data["size"])
        return None
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Reserve a block of numbers for manual use"),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "form": form,
        "documents": [(row, grouped(row.next_low)) for row in queryset],
        "checkbox": helpers.ACTION_CHECKBOX_NAME,
    }
    template = "admin/django_hilo/hilodocument/block.html"
    return TemplateResponse(request, template, context)


def _reserve(
    model_admin: Any, request: HttpRequest, document: HiLoDocument, size: int
) -> None:
    try:
        counter = edit_counter.counter_of(document)
        block = lending.lend(counter, size, user=request.user).range
    except HiLoError as error:
        text = gettext("no block was reserved. %(error)s") % {"error": error}
        _report(model_admin, request, document, messages.ERROR, text)
        return
    known = {
        "low": grouped(block.low),
        "high": grouped(block.high),
        "first": edit_counter.id_at(document, block.low),
        "last": edit_counter.id_at(document, block.high),
    }
    done = gettext(
        "Reserved the block %(low)s to %(high)s for manual use: %(first)s to %(last)s."
    )
    model_admin.log_change(request, qualify(document), done % known)
    text = gettext(
        "the block %(low)s to %(high)s is yours, as ids %(first)s to %(last)s. Nobody "
        "else will ever get these numbers. The counter's history has this."
    )
    _report(model_admin, request, document, messages.SUCCESS, text % known)
