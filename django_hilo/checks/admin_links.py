"""A system check of the links "View on site" of the admin."""

from typing import Any

from django.apps import apps
from django.core import checks

from django_hilo.conf import settings
from django_hilo.fields._text_ids import IdField


def check_view_on_site(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of links whose ids Django splits at a slash, so that each is a 404."""
    if settings.SEPARATOR != "/" or not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.options import BaseModelAdmin
    from django.contrib.admin.sites import all_sites

    shown: set[tuple[Any, Any]] = set()
    for site in all_sites:
        for model, options in site._registry.items():
            shown.add((type(options), model))
            shown.update(
                (each, getattr(each, "model", None)) for each in options.inlines
            )
    return [
        checks.Warning(
            f"The link 'View on site' of {admin.__name__} is a 404 for each id of "
            f"{model.__name__}, because ids contain '/'.",
            hint="Add the method: def view_on_site(self, obj): "
            "return obj.get_absolute_url()",
            obj=admin,
            id="django_hilo.W115",
        )
        for admin, model in sorted(shown, key=str)
        if hasattr(model, "get_absolute_url")
        and isinstance(_key_behind(model._meta.pk), IdField)
        and admin.view_on_site
        and not callable(admin.view_on_site)
        and admin.get_view_on_site_url is BaseModelAdmin.get_view_on_site_url
    ]


def _key_behind(field: Any) -> Any:
    """Return the key that the link of a child by multi-table inheritance names."""
    while field.remote_field:
        field = field.target_field
    return field
