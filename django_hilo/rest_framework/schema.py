"""The OpenAPI schema of the endpoints; imported only if drf-spectacular is installed.

The views' docstrings, serializers and queries are the texts and types of the schema.
"""

from inspect import getdoc
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
    extend_schema_view,
    inline_serializer,
)
from rest_framework.serializers import CharField

from django_hilo.identifiers import MAX_COLLECTION_LENGTH, MAX_SERVER_PREFIX_LENGTH
from django_hilo.rest_framework import fields, serializers, views

# Forms are read for the pages of the browsable API; programs send JSON.
JSON = "application/json"


def _text(pattern: str, most: int | None = None) -> dict[str, Any]:
    length = {} if most is None else {"maxLength": most}
    return {"type": "string", "pattern": pattern, **length}


def _text_or_blank(pattern: str, most: int) -> dict[str, Any]:
    # drf-spectacular adds the second to a type of its own, also to a pattern for both.
    return {"oneOf": [_text(pattern, most), {"type": "string", "maxLength": 0}]}


# What \s means differs among dialects of regular expressions.
_BARRED = r"$|\x00-\x20\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_COLLECTION = _text("^[A-Za-z][A-Za-z0-9_-]*$", MAX_COLLECTION_LENGTH)
_GRAMMARS = {
    fields.CollectionField: _COLLECTION,
    fields.ServerPrefixField: _text_or_blank(
        f"^[^{_BARRED}]*[^{_BARRED}0-9]$", MAX_SERVER_PREFIX_LENGTH
    ),
    # An empty search finds everything, as none does.
    fields.SearchField: _text_or_blank(r"^[^\u0000]+$", MAX_COLLECTION_LENGTH),
}

_TICKET = "0123456789abcdef0123456789abcdef"
_EXAMPLES: dict[Any, dict[str, Any]] = {
    serializers.DocumentSerializer: {
        "collection": "orders",
        "node_tag": "A",
        "max": 500,
        "floor": 0,
        "low": 33,
        "size": 32,
        "reserved_at": "2026-01-31T12:00:00Z",
    },
    serializers.RaiseMaxSerializer: {"max": 500},
    serializers.NextIdsSerializer: {"count": 1},
    serializers.NumberedIdsSerializer: {
        "collection": "orders",
        "numbers": [34],
        "ids": ["orders/34-A"],
    },
    serializers.RangeSizeSerializer: {"size": 1000},
    serializers.RangeSerializer: {
        "collection": "orders",
        "separator": "/",
        "server_prefix": "",
        "low": 65,
        "high": 1064,
        "node_tag": "A",
        "width": 0,
        "ticket": _TICKET,
    },
    serializers.RangeReturnSerializer: {"high": 1064, "last": 70, "ticket": _TICKET},
    serializers.ReturnedSerializer: {"returned": True, "max": 70},
    serializers.GaplessNumberSerializer: {"number": 1, "id": "invoices/1"},
    serializers.PrefixSerializer: {"node_tag": "A", "prefix": "NorthServer/"},
    serializers.SetPrefixSerializer: {"prefix": "NorthServer/"},
}


class OfRequests(OpenApiSerializerExtension):  # type: ignore[no-untyped-call] # has none
    """Requests with other keys are refused: a typo must not request the default."""

    target_class = serializers.RequestSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        mapped = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return {**mapped, "additionalProperties": False}


def _in_path(name: str, schema: dict[str, Any], description: Any) -> OpenApiParameter:
    return OpenApiParameter(name, schema, "path", description=description)


_OF_COLLECTION = _in_path(
    "collection",
    _COLLECTION,
    _("The family of ids that share a counter; not case-sensitive."),
)
_OF_COUNTER = _in_path(
    "node_tag",
    _text("^(-|[A-Z]{1,4})$"),
    _("The node tag of the counter; - for a counter without a tag."),
)
_OF_PREFIX = _in_path(
    "node_tag", _text("^[A-Z]{1,4}$"), _("The node tag that has the prefix.")
)


_STRING = {"type": "string"}
_PROBLEM = inline_serializer("HiLoProblem", {"detail": CharField()})
_NOT_RETURNED = {
    "type": "object",
    "properties": {"returned": {"type": "boolean", "enum": [False]}, "detail": _STRING},
    "required": ["returned", "detail"],
}


def _problem(description: Any, schema: Any = _PROBLEM) -> OpenApiResponse:
    return OpenApiResponse(schema, description)


_MISTAKES = {
    "type": "object",
    "description": "Messages by the name of the invalid field, or a `detail`.",
    "additionalProperties": {"oneOf": [_STRING, {"type": "array", "items": _STRING}]},
}
_PROBLEMS = {
    400: _problem(_("The body or the query is invalid."), _MISTAKES),
    401: _problem(_("Authentication is required.")),
    403: _problem(_("The caller lacks the permission.")),
    404: _problem(_("There is no such counter or page.")),
    406: _problem(_("The requested format is not available.")),
    429: _problem(_("Too many requests; retry after the time in Retry-After.")),
    503: _problem(_("The database is unavailable; with Retry-After, try again.")),
}
_NOT_JSON = _problem(_("The body is not JSON."))
_EXHAUSTED = _problem(_("The counter has too few numbers left below 2^63."))


def _describe(
    view: Any,
    method: str,
    name: str,
    responses: dict[int, Any],
    *path: OpenApiParameter,
    body: Any = None,
) -> None:
    """Describe a method of a view; ``body`` is by default the view's serializer."""
    responses = responses | _PROBLEMS
    request = None
    if method != "get":
        responses[415] = _NOT_JSON
        request = {JSON: body or view.serializer_class}
    operation = extend_schema(
        operation_id=f"hilo_{name}",
        tags=["HiLo"],
        summary=(getdoc(getattr(view, method)) or "").partition("\n")[0].rstrip("."),
        description=getdoc(view),
        parameters=[*path, view.query_class],
        request=request,
        responses=responses,
    )
    extend_schema_view(**{method: operation})(view)


def describe() -> None:
    """Decorate the views, and the fields whose grammar the schema can express."""
    for field, grammar in _GRAMMARS.items():
        extend_schema_field(grammar)(field)
    for serializer, value in _EXAMPLES.items():
        examples = [OpenApiExample("example", value)]
        extend_schema_serializer(examples=examples)(serializer)

    counter, prefix = serializers.DocumentSerializer, serializers.PrefixSerializer
    refused = _("Max is already higher, or too many numbers would be skipped.")
    raised = {200: counter, 409: _problem(refused)}
    ids = {201: serializers.NumberedIdsSerializer, 409: _EXHAUSTED}
    lent = {201: serializers.RangeSerializer, 409: _EXHAUSTED}
    gap = _problem(_("The numbers stay a gap."), _NOT_RETURNED)
    returned = {200: serializers.ReturnedSerializer, 409: gap}
    gapless = {201: serializers.GaplessNumberSerializer, 409: _EXHAUSTED}
    of_counter = (_OF_COLLECTION, _OF_COUNTER)

    _describe(views.Counters, "get", "documents", {200: counter(many=True)})
    _describe(views.Counter, "get", "document", {200: counter}, *of_counter)
    _describe(
        *(views.Counter, "patch", "raise_max", raised, *of_counter),
        body=serializers.RaiseMaxSerializer,
    )
    _describe(views.NextIds, "post", "next_ids", ids, _OF_COLLECTION)
    _describe(views.Ranges, "post", "lend_range", lent, _OF_COLLECTION)
    _describe(views.RangeReturn, "post", "return_range", returned, _OF_COLLECTION)
    _describe(views.NextGaplessNumber, "post", "next_gapless", gapless, _OF_COLLECTION)
    _describe(views.Prefixes, "get", "prefixes", {200: prefix(many=True)})
    _describe(views.Prefix, "put", "set_prefix", {200: prefix}, _OF_PREFIX)
