"""A system check of the routes of Django REST framework's ViewSets."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings as django_settings
from django.core import checks
from django.urls import get_resolver

from django_hilo.conf import settings
from django_hilo.fields._text_ids import IdField


def check_viewsets(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of ViewSets whose routes match no id, so that each object is a 404."""
    # DRF's own pattern for a key is [^/.]+.
    separator = str(settings.SEPARATOR)
    # A worker, or a package's tests, may have set it to None.
    if separator not in "/." or not getattr(django_settings, "ROOT_URLCONF", None):
        return []
    return [
        checks.Warning(
            f"The routes of {view.__name__} match no id of "
            f"{view.queryset.model.__name__}, because ids contain "
            f"{separator!r}.",
            hint="Set lookup_value_regex = ID_PATTERN (from django_hilo.identifiers). "
            "In a new project, HILO['SEPARATOR'] = ':' is simpler.",
            obj=view,
            id="django_hilo.W113",
        )
        for view in dict.fromkeys(_routed(get_resolver().url_patterns))
        if _looks_up_ids(view)
        and not hasattr(view, "lookup_value_regex")
        and not hasattr(view, "lookup_value_converter")
    ]


def _routed(patterns: Iterable[Any]) -> Iterator[Any]:
    """Find the ViewSets of which a router has made routes to single objects."""
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from _routed(pattern.url_patterns)
        elif getattr(pattern.callback, "initkwargs", {}).get("detail"):
            yield pattern.callback.cls


def _looks_up_ids(view: Any) -> bool:
    model = getattr(getattr(view, "queryset", None), "model", None)
    if model is None:
        return False
    meta, name = model._meta, view.lookup_field
    name = meta.pk.name if name == "pk" else name
    return any(isinstance(f, IdField) for f in meta.fields if f.name == name)
