"""Pages of our own that look like the admin's forms, in the theme that it has."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin, helpers
from django.http import HttpRequest, HttpResponse

from django_hilo.models import HiLoDocument


def form_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    template: str,
    form: Any,
    *,
    title: str,
    document: HiLoDocument | None = None,
    hidden: list[tuple[str, str]],
    **context: Any,
) -> HttpResponse:
    """Return a page with a form that is posted to the URL of this request.

    ``template`` extends the admin's change_form.html. ``hidden`` are names and values
    that the form sends along.
    """
    fields = (None, {"fields": list(form.fields)})
    response = model_admin.render_change_form(
        request,
        {
            **model_admin.admin_site.each_context(request),
            "title": title,
            "subtitle": str(document) if document else None,
            "adminform": helpers.AdminForm(
                form, [fields], {}, (), model_admin=model_admin
            ),
            "original": document,
            "is_popup": False,
            "to_field": None,
            "media": model_admin.media + form.media,
            "inline_admin_formsets": [],
            "errors": helpers.AdminErrorList(form, []),
            "preserved_filters": model_admin.get_preserved_filters(request),
            "hidden": hidden,
            **context,
        },
        obj=document,
    )
    response.template_name = f"admin/django_hilo/hilodocument/{template}"  # type: ignore[attr-defined]
    return response
