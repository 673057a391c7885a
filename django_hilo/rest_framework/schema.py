"""What drf-spectacular says of the endpoints; imported only where it is installed."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import (
    Direction,
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)

from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_SERVER_PREFIX_LENGTH,
)
from django_hilo.rest_framework import fields, serializers, views
from django_hilo.rest_framework.queries import (
    DatabaseQuery,
    DocumentsQuery,
    PageQuery,
)

TAG = "HiLo"

# What \s means differs among dialects of regular expressions.
_BARRED = r"$|\x00-\x20\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Forms are read for the pages of the browsable API; programs send JSON.
JSON = "application/json"
COLLECTION_SCHEMA = {
    "type": "string",
    "pattern": "^[A-Za-z][A-Za-z0-9_-]*$",
    "maxLength": MAX_COLLECTION_LENGTH,
}
PREFIX_SCHEMA = {
    "type": "string",
    "pattern": f"^([^{_BARRED}]*[^{_BARRED}0-9])?$",
    "maxLength": MAX_SERVER_PREFIX_LENGTH,
}


class RaiseMaxBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Max is needed, though drf-spectacular takes all of a PATCH for optional."""

    target_class = serializers.RaiseMaxSerializer

    def get_name(self, auto_schema: AutoSchema, direction: Direction) -> str:
        return "RaiseMax"

    def map_serializer(
        self, auto_schema: AutoSchema, direction: Direction
    ) -> dict[str, Any]:
        self.target.partial = False
        schema: dict[str, Any] = auto_schema._map_serializer(  # type: ignore[no-untyped-call]
            self.target, direction, bypass_extensions=True
        )
        return schema


COLLECTION = OpenApiParameter(
    "collection",
    COLLECTION_SCHEMA,
    OpenApiParameter.PATH,
    description=_("The family of ids that share a counter, in whatever case."),
    examples=[OpenApiExample("orders", "orders")],
)
NODE_TAG = OpenApiParameter(
    "node_tag",
    {"type": "string", "pattern": "^(-|[A-Z]{1,4})$"},
    OpenApiParameter.PATH,
    description=_("The database node of the counter; - for a counter without a tag."),
)
NODE = OpenApiParameter(
    "node_tag",
    {"type": "string", "pattern": "^[A-Z]{1,4}$"},
    OpenApiParameter.PATH,
    description=_("The database node whose ids show the prefix."),
)

_DETAIL = {
    "type": "object",
    "properties": {"detail": {"type": "string"}},
    "required": ["detail"],
}
_MISTAKES = {
    "type": "object",
    "description": "Messages by the name of what is wrong, or a `detail`.",
    "additionalProperties": {
        "oneOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}},
        ]
    },
}
_NOT_RETURNED = {
    "type": "object",
    "properties": {
        "returned": {"type": "boolean", "enum": [False]},
        "detail": {"type": "string"},
    },
    "required": ["returned", "detail"],
}


def _problem(description: Any, schema: Any = _DETAIL) -> OpenApiResponse:
    return OpenApiResponse(schema, description=description)


ALWAYS = {
    400: _problem(_("The body or the query is wrong; it says why."), _MISTAKES),
    401: _problem(_("Who is asking is not known.")),
    403: _problem(_("The permission is missing.")),
    404: _problem(_("There is no such counter or page.")),
    406: _problem(_("The answer cannot have the format that was asked for.")),
    429: _problem(_("Too many requests; Retry-After says when to come back.")),
    503: _problem(_("The database is busy or away; where Retry-After stands, retry.")),
}
WITH_BODY = ALWAYS | {415: _problem(_("The body has another format than JSON."))}


def _example(name: str, value: Any, status: int | None = None) -> OpenApiExample:
    if status is None:
        return OpenApiExample(name, value, request_only=True)
    return OpenApiExample(name, value, response_only=True, status_codes=[str(status)])


_ORDERS = {
    "collection": "orders",
    "node_tag": "A",
    "max": 64,
    "floor": 0,
    "low": 33,
    "size": 32,
    "reserved_at": "2026-01-31T12:00:00Z",
}
_PAGE = [_ORDERS]
_NORTH = {"node_tag": "A", "prefix": "NorthServer/"}
_TICKET = "0123456789abcdef0123456789abcdef"


def describe() -> None:
    """Decorate the views, and the fields whose grammar the schema can tell."""
    extend_schema_field(COLLECTION_SCHEMA)(fields.CollectionField)
    extend_schema_field(PREFIX_SCHEMA)(fields.ServerPrefixField)
    _describe_counters()
    _describe_numbers()
    _describe_prefixes()


def _describe_counters() -> None:
    extend_schema_view(
        get=extend_schema(
            operation_id="hilo_documents",
            tags=[TAG],
            summary=_("List counters"),
            parameters=[DocumentsQuery],
            responses={200: serializers.DocumentSerializer(many=True)} | ALWAYS,
            examples=[_example("orders", _ORDERS, 200)],
        )
    )(views.Documents)
    extend_schema_view(
        get=extend_schema(
            operation_id="hilo_document",
            tags=[TAG],
            summary=_("Show a counter"),
            parameters=[COLLECTION, NODE_TAG, DatabaseQuery],
            responses={200: serializers.DocumentSerializer} | ALWAYS,
            examples=[_example("orders", _ORDERS, 200)],
        ),
        patch=extend_schema(
            operation_id="hilo_raise_max",
            tags=[TAG],
            summary=_("Raise Max of a counter"),
            description=_(
                "The next range starts over it. Lowering is refused, always: numbers "
                "would be given twice."
            ),
            parameters=[COLLECTION, NODE_TAG, DatabaseQuery],
            request={JSON: serializers.RaiseMaxSerializer},
            responses={
                200: serializers.DocumentSerializer,
                409: _problem(_("Max is over it already.")),
            }
            | WITH_BODY,
            examples=[
                _example("to 500", {"max": 500}),
                _example("raised", _ORDERS | {"max": 500}, 200),
            ],
        ),
    )(views.Document)


def _describe_numbers() -> None:
    exhausted = {409: _problem(_("The counter has too few numbers under 2^63-1."))}
    extend_schema_view(
        post=extend_schema(
            operation_id="hilo_next_ids",
            tags=[TAG],
            summary=_("Take ids"),
            description=_(
                "Numbers are unique among those of one counter only, and carry neither "
                "its collection nor its node tag: store ids, or keep numbers of "
                "different counters apart. There may be gaps, and numbers do not come "
                "in the order of time. Numbers above 2^53 are exact in `ids` only, for "
                "readers that keep numbers as floating point, as JavaScript does."
            ),
            parameters=[COLLECTION, DatabaseQuery],
            request={JSON: serializers.NextIdsSerializer},
            responses={201: serializers.NumberedIdsSerializer} | exhausted | WITH_BODY,
            examples=[
                _example("one", {"count": 1}),
                _example(
                    "given",
                    {"collection": "orders", "numbers": [34], "ids": ["orders/34-A"]},
                    201,
                ),
            ],
        )
    )(views.NextIds)
    extend_schema_view(
        post=extend_schema(
            operation_id="hilo_lend_range",
            tags=[TAG],
            summary=_("Reserve a range"),
            description=_(
                "The range is the caller's: nobody else gets its numbers. An id is "
                "collection + separator + server_prefix + number, with leading zeros "
                "up to width digits, and where node_tag is not empty, - and node_tag. "
                "The numbers are unique among those of one counter only; what is not "
                "used stays a gap. Read numbers as 64-bit integers: above 2^53 "
                "floating point is not exact."
            ),
            parameters=[COLLECTION, DatabaseQuery],
            request={JSON: serializers.RangeSizeSerializer},
            responses={201: serializers.RangeSerializer} | exhausted | WITH_BODY,
            examples=[
                _example("a thousand", {"size": 1000}),
                _example(
                    "reserved",
                    {
                        "collection": "orders",
                        "separator": "/",
                        "server_prefix": "",
                        "low": 65,
                        "high": 1064,
                        "node_tag": "A",
                        "width": 0,
                        "ticket": _TICKET,
                    },
                    201,
                ),
            ],
        )
    )(views.Ranges)
    extend_schema_view(
        post=extend_schema(
            operation_id="hilo_return_range",
            tags=[TAG],
            summary=_("Return the unused end of a range"),
            description=_(
                "Only the newest range of a counter can go back, and only with its "
                "ticket, once. What is refused stays a gap, which does no harm."
            ),
            parameters=[COLLECTION, DatabaseQuery],
            request={JSON: serializers.RangeReturnSerializer},
            responses={
                200: serializers.ReturnedSerializer,
                409: _problem(_("It stays a gap."), _NOT_RETURNED),
            }
            | WITH_BODY,
            examples=[
                _example("after 70", {"high": 1064, "last": 70, "ticket": _TICKET}),
                _example("returned", {"returned": True, "max": 70}, 200),
                _example(
                    "refused",
                    {
                        "returned": False,
                        "detail": "The range up to 1064 is not the newest of "
                        "'orders/A' on 'default' any more: its unused numbers stay a "
                        "gap.",
                    },
                    409,
                ),
            ],
        )
    )(views.RangeReturn)
    extend_schema_view(
        post=extend_schema(
            operation_id="hilo_next_gapless",
            tags=[TAG],
            summary=_("Take a gapless number"),
            description=_(
                "One by one, without gaps but for answers that never arrive. The "
                "number belongs to the transaction of the request."
            ),
            parameters=[COLLECTION, DatabaseQuery],
            request=None,
            responses={201: serializers.GaplessNumberSerializer}
            | exhausted
            | WITH_BODY,
            examples=[_example("taken", {"number": 1, "id": "invoices/1"}, 201)],
        )
    )(views.GaplessNext)


def _describe_prefixes() -> None:
    extend_schema_view(
        get=extend_schema(
            operation_id="hilo_prefixes",
            tags=[TAG],
            summary=_("List server prefixes"),
            parameters=[PageQuery],
            responses={200: serializers.PrefixSerializer(many=True)} | ALWAYS,
            examples=[_example("NorthServer", _NORTH, 200)],
        )
    )(views.Prefixes)
    extend_schema_view(
        put=extend_schema(
            operation_id="hilo_set_prefix",
            tags=[TAG],
            summary=_("Set the server prefix of a node"),
            description=_(
                "A node that has none has the empty one. It holds from each process's "
                "next range on."
            ),
            parameters=[NODE, DatabaseQuery],
            request={JSON: serializers.SetPrefixSerializer},
            responses={200: serializers.PrefixSerializer} | WITH_BODY,
            examples=[
                _example("NorthServer", {"prefix": "NorthServer/"}),
                _example("set", _NORTH, 200),
            ],
        )
    )(views.Prefix)
