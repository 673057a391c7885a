"""The OpenAPI schema of the endpoints; imported only if drf-spectacular is installed.

It reads texts and types from the views and serializers; this adds what it cannot see.
"""

from inspect import getdoc
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view

from django_hilo.rest_framework import serializers, views

# Forms are read for the pages of the browsable API; programs send JSON.
JSON = "application/json"

_PROBLEMS = {
    "4XX": OpenApiResponse(
        OpenApiTypes.OBJECT,
        _("A `detail`, or messages by the name of the invalid field."),
    ),
    503: OpenApiResponse(
        OpenApiTypes.OBJECT,
        _("The database is unavailable; with Retry-After, try again."),
    ),
}


def describe() -> None:
    """Name the operations, their answers and errors, and the queries of the views."""
    counter, prefix = serializers.DocumentSerializer, serializers.PrefixSerializer
    change, ids = serializers.RaiseMaxSerializer, serializers.NumberedIdsSerializer
    lent, returned = serializers.RangeSerializer, serializers.ReturnedSerializer
    gapless = serializers.GaplessNumberSerializer
    _describe(views.Counters, "get", "documents", {200: counter(many=True)})
    _describe(views.Counter, "get", "document", {200: counter})
    _describe(views.Counter, "patch", "raise_max", {200: counter}, change)
    _describe(views.NextIds, "post", "next_ids", {201: ids})
    _describe(views.Ranges, "post", "lend_range", {201: lent})
    _describe(views.RangeReturn, "post", "return_range", {200: returned})
    _describe(views.NextGaplessNumber, "post", "next_gapless", {201: gapless})
    _describe(views.Prefixes, "get", "prefixes", {200: prefix(many=True)})
    _describe(views.Prefix, "put", "set_prefix", {200: prefix})


def _describe(
    view: Any, method: str, name: str, answer: dict[int, Any], body: Any = None
) -> None:
    """Describe a method of a view; ``body`` is by default the view's serializer."""
    sent = None if method == "get" else {JSON: body or view.serializer_class}
    operation = extend_schema(
        operation_id=f"hilo_{name}",
        tags=["HiLo"],
        summary=getattr(view, method).__doc__,
        description=getdoc(view),
        parameters=[view.query_class],
        request=sent,
        responses=answer | _PROBLEMS,
    )
    extend_schema_view(**{method: operation})(view)
