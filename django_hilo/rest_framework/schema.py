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
    extend_schema_view,
)

from django_hilo.identifiers import MAX_COLLECTION_LENGTH, MAX_SERVER_PREFIX_LENGTH
from django_hilo.rest_framework import fields, serializers, views

# Forms are read for the pages of the browsable API; programs send JSON.
JSON = "application/json"

# What \s means differs among dialects of regular expressions.
_BARRED = r"$|\x00-\x20\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_COLLECTION = {
    "type": "string",
    "pattern": "^[A-Za-z][A-Za-z0-9_-]*$",
    "maxLength": MAX_COLLECTION_LENGTH,
}
_PREFIX = {
    "type": "string",
    "pattern": f"^([^{_BARRED}]*[^{_BARRED}0-9])?$",
    "maxLength": MAX_SERVER_PREFIX_LENGTH,
}
# An empty search finds everything, as none does.
_SEARCH = {
    "type": "string",
    "pattern": r"^[^\u0000]*$",
    "maxLength": MAX_COLLECTION_LENGTH,
}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


_TEXT = {"type": "string"}
_DETAIL = _object(detail=_TEXT)
_NOT_RETURNED = _object(returned={"type": "boolean", "enum": [False]}, detail=_TEXT)
_MISTAKES = {
    "type": "object",
    "description": "Messages by the name of the invalid field, or a `detail`.",
    "additionalProperties": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}


class RaiseMaxBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Require Max: drf-spectacular takes everything in a PATCH for optional."""

    target_class = serializers.RaiseMaxSerializer

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        return "RaiseMax"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        self.target.partial = False
        schema: dict[str, Any] = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return schema


def _problem(description: Any, schema: Any = _DETAIL) -> OpenApiResponse:
    return OpenApiResponse(schema, description=description)


_ALWAYS = {
    400: _problem(_("The body or the query is invalid."), _MISTAKES),
    401: _problem(_("Authentication is required.")),
    403: _problem(_("The caller lacks the permission.")),
    404: _problem(_("There is no such counter or page.")),
    406: _problem(_("The requested format is not available.")),
    429: _problem(_("Too many requests; retry after the time in Retry-After.")),
    503: _problem(_("The database is unavailable; with Retry-After, try again.")),
}
_WITH_BODY = {415: _problem(_("The body is not JSON."))}
_EXHAUSTED = {409: _problem(_("The counter has too few numbers left below 2^63."))}


_PATH: list[tuple[str, dict[str, Any], Any]] = [
    (
        "collection",
        _COLLECTION,
        _("The family of ids that share a counter; not case-sensitive."),
    ),
    (
        "node_tag",
        _TEXT | {"pattern": "^(-|[A-Z]{1,4})$"},
        _("The node tag of the counter; - for a counter without a tag."),
    ),
    (
        "node_tag of a prefix",
        _TEXT | {"pattern": "^[A-Z]{1,4}$"},
        _("The node tag that has the prefix."),
    ),
]
_IN_PATH = {
    key: OpenApiParameter(key.split()[0], schema, "path", description=description)
    for key, schema, description in _PATH
}


def _describe(
    view: Any,
    method: str,
    name: str,
    answer: Any,
    *path: str,
    shows: Any,
    status: int = 200,
    sends: Any = None,
    body: Any = None,
    conflict: dict[int, OpenApiResponse] | None = None,
) -> None:
    """Describe a method: ``shows`` is an example of its answer, ``sends`` of a body."""
    examples = [
        OpenApiExample("answer", shows, response_only=True, status_codes=[str(status)])
    ]
    responses = {status: answer, **_ALWAYS, **(conflict or {})}
    if method != "get":
        responses |= _WITH_BODY
    if sends is not None:
        examples.append(OpenApiExample("request", sends, request_only=True))
        body = body or view.serializer_class
    operation = extend_schema(
        operation_id=f"hilo_{name}",
        tags=["HiLo"],
        summary=(getdoc(getattr(view, method)) or "").partition("\n")[0].rstrip("."),
        description=getdoc(view),
        parameters=[*(_IN_PATH[each] for each in path), view.query_class],
        request={JSON: body} if body else None,
        responses=responses,
        examples=examples,
    )
    extend_schema_view(**{method: operation})(view)


def describe() -> None:
    """Decorate the views, and the fields whose grammar the schema can express."""
    extend_schema_field(_COLLECTION)(fields.CollectionField)
    extend_schema_field(_PREFIX)(fields.ServerPrefixField)
    extend_schema_field(_SEARCH)(fields.SearchField)
    counter = serializers.DocumentSerializer
    orders = {
        "collection": "orders",
        "node_tag": "A",
        "max": 64,
        "floor": 0,
        "low": 33,
        "size": 32,
        "reserved_at": "2026-01-31T12:00:00Z",
    }
    _describe(views.Counters, "get", "documents", counter(many=True), shows=orders)
    names = ("collection", "node_tag")
    _describe(views.Counter, "get", "document", counter, *names, shows=orders)
    _describe(
        *(views.Counter, "patch", "raise_max", counter, *names),
        sends={"max": 500},
        body=serializers.RaiseMaxSerializer,
        shows=orders | {"max": 500},
        conflict={409: _problem(_("Max is already higher."))},
    )
    _describe(
        views.NextIds,
        "post",
        "next_ids",
        serializers.NumberedIdsSerializer,
        "collection",
        sends={"count": 1},
        shows={"collection": "orders", "numbers": [34], "ids": ["orders/34-A"]},
        status=201,
        conflict=_EXHAUSTED,
    )
    ticket = "0123456789abcdef0123456789abcdef"
    _describe(
        views.Ranges,
        "post",
        "lend_range",
        serializers.RangeSerializer,
        "collection",
        sends={"size": 1000},
        shows={
            "collection": "orders",
            "separator": "/",
            "server_prefix": "",
            "low": 65,
            "high": 1064,
            "node_tag": "A",
            "width": 0,
            "ticket": ticket,
        },
        status=201,
        conflict=_EXHAUSTED,
    )
    _describe(
        views.RangeReturn,
        "post",
        "return_range",
        serializers.ReturnedSerializer,
        "collection",
        sends={"high": 1064, "last": 70, "ticket": ticket},
        shows={"returned": True, "max": 70},
        conflict={409: _problem(_("The numbers stay a gap."), _NOT_RETURNED)},
    )
    _describe(
        views.NextGaplessNumber,
        "post",
        "next_gapless",
        serializers.GaplessNumberSerializer,
        "collection",
        shows={"number": 1, "id": "invoices/1"},
        status=201,
        conflict=_EXHAUSTED,
    )
    prefix, north = serializers.PrefixSerializer, {"node_tag": "A", "prefix": "North/"}
    _describe(views.Prefixes, "get", "prefixes", prefix(many=True), shows=north)
    _describe(
        views.Prefix,
        "put",
        "set_prefix",
        prefix,
        "node_tag of a prefix",
        sends={"prefix": "NorthServer/"},
        shows=north | {"prefix": "NorthServer/"},
    )
