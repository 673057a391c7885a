"""Views over `edit_counter`, `server_prefixes` and `generator`.

The docstrings are shown in the browsable API and in the schema.
"""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.filters import SearchFilter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from django_hilo._operations import edit_counter, edit_gapless, lending, server_prefixes
from django_hilo.conf import settings
from django_hilo.generator import next_ids
from django_hilo.identifiers import IdFormat, parse
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.rest_framework import lookup, queries, serializers
from django_hilo.rest_framework.base_views import HiLoListView, HiLoView
from django_hilo.rest_framework.errors import Conflict
from django_hilo.rest_framework.listing import CounterFilter, CounterOrdering

VIEW_DOCUMENTS = "django_hilo.view_hilodocument"
CHANGE_DOCUMENTS = "django_hilo.change_hilodocument"
TAKE_IDS = "django_hilo.take_hilo_ids"
VIEW_PREFIXES = "django_hilo.view_serverprefix"
CHANGE_PREFIXES = "django_hilo.change_serverprefix"


class Counters(HiLoListView):
    """List the counters of a database."""

    needs = {"GET": VIEW_DOCUMENTS}
    model = HiLoDocument
    query_class = queries.DocumentsQuery
    serializer_class = serializers.DocumentSerializer
    filter_backends = [CounterFilter, SearchFilter, CounterOrdering]
    search_fields = ["collection", "node_tag"]
    ordering_fields = queries.ORDERINGS


class Counter(HiLoView):
    """A counter.

    Max can be raised, by `MAX_FLOOR_JUMP` at a time; the next range starts above it.
    Lowering is always refused: it would reissue numbers.
    """

    needs = {"GET": VIEW_DOCUMENTS, "PATCH": CHANGE_DOCUMENTS}

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        if self.request.method == "PATCH":
            return serializers.RaiseMaxSerializer
        return serializers.DocumentSerializer

    def get(
        self, request: Request, collection: str, node_tag: str, **names: Any
    ) -> Response:
        """Show a counter."""
        row = lookup.stored(collection, node_tag, self.database)
        return Response(serializers.DocumentSerializer(row).data)

    def patch(
        self, request: Request, collection: str, node_tag: str, **names: Any
    ) -> Response:
        """Raise Max of a counter."""
        number = self.sent()["max"]
        row = lookup.stored(collection, node_tag, self.database)
        if number - row.max > settings.MAX_FLOOR_JUMP:
            refusal = _(
                "More than %(jump)s numbers would be skipped. Raise Max in the admin, "
                "which asks for a confirmation."
            )
            jump = {"jump": settings.MAX_FLOOR_JUMP}
            raise Conflict(refusal % jump)
        row = edit_counter.raise_max(row, number, user=request.user)
        return Response(serializers.DocumentSerializer(row).data)


class NextIds(HiLoView):
    """Ids out of the ranges that this process has reserved.

    Numbers are unique among those of one counter only, and carry neither its collection
    nor its node tag: store ids, or keep numbers of different counters apart. There may
    be gaps, and numbers are not chronological. JavaScript rounds numbers above 2^53:
    use `ids`, which are text unless the key is an integer.
    """

    needs = {"POST": TAKE_IDS}
    serializer_class = serializers.NextIdsSerializer

    def post(self, request: Request, collection: str, **names: Any) -> Response:
        """Take ids."""
        count = self.sent()["count"]
        counter = lookup.lendable(collection, self.database)
        ids: list[Any] = next_ids(counter, count)
        numbers = ids if counter.is_integer else [parse(id).number for id in ids]
        answer = {"collection": counter.collection, "numbers": numbers, "ids": ids}
        return Response(answer, status.HTTP_201_CREATED)


class Ranges(HiLoView):
    """Ranges for programs that make ids themselves.

    The range is the caller's: nobody else gets its numbers. An id is collection +
    separator + server_prefix + number, with leading zeros up to width digits, and, if
    node_tag is not empty, - and node_tag. The numbers are unique among those of one
    counter only; unused ones stay a gap. Read numbers as 64-bit integers: above 2^53
    floating point is not exact.
    """

    needs = {"POST": TAKE_IDS}
    serializer_class = serializers.RangeSizeSerializer

    def post(self, request: Request, collection: str, **names: Any) -> Response:
        """Reserve a range."""
        size = self.sent()["size"]
        counter = lookup.lendable(collection, self.database)
        lent = lending.lend(counter, size, user=request.user)
        answer = {
            "collection": counter.collection,
            "separator": settings.SEPARATOR,
            "server_prefix": lent.server_prefix,
            "low": lent.range.low,
            "high": lent.range.high,
            "node_tag": lent.node_tag if settings.SHOW_NODE_TAG else "",
            "width": counter.width,
            "ticket": lent.ticket,
        }
        return Response(answer, status.HTTP_201_CREATED)


class RangeReturn(HiLoView):
    """The unused ends of ranges.

    Only the newest range of a counter can go back, and only with its ticket, once. A
    refused return leaves a gap, which does no harm.
    """

    needs = {"POST": TAKE_IDS}
    serializer_class = serializers.RangeReturnSerializer

    def post(self, request: Request, collection: str, **names: Any) -> Response:
        """Return the unused end of a range."""
        sent = self.sent()
        counter = lookup.lendable(collection, self.database)
        number = lending.take_back(counter, **sent, user=request.user)
        return Response({"returned": True, "max": number})


class Prefixes(HiLoListView):
    """List the server prefixes; a node without one has the empty one."""

    needs = {"GET": VIEW_PREFIXES}
    model = ServerPrefix
    serializer_class = serializers.PrefixSerializer


class Prefix(HiLoView):
    """The server prefix of a node; it holds from each process's next range on."""

    needs = {"PUT": CHANGE_PREFIXES}
    serializer_class = serializers.SetPrefixSerializer

    def get_object(self) -> ServerPrefix:
        """Return the prefix as it is, for DRF's answer to OPTIONS."""
        tag = lookup.node(self.kwargs["node_tag"])
        row = ServerPrefix.objects.using(self.home).filter(pk=tag).first()
        return row or ServerPrefix(node_tag=tag)

    def put(self, request: Request, node_tag: str, **names: Any) -> Response:
        """Set the server prefix of a node."""
        prefix = self.sent()["prefix"]
        row = server_prefixes.set_prefix(
            lookup.node(node_tag), prefix, using=self.home, user=request.user
        )
        return Response(serializers.PrefixSerializer(row).data)


class NextGaplessNumber(HiLoView):
    """Gapless numbers, one by one.

    There are no gaps, except for answers that never arrive. The number belongs to the
    transaction of the request: the counter stays locked until that ends.
    """

    needs = {"POST": TAKE_IDS}
    serializer_class = serializers.NothingSerializer

    def post(self, request: Request, collection: str, **names: Any) -> Response:
        """Take a gapless number."""
        self.sent()
        counter = lookup.gapless(collection, self.database)
        number = edit_gapless.take_gapless(
            counter.collection, using=counter.using, user=request.user
        )
        id = IdFormat.of(counter.collection, settings.SEPARATOR).text(number)
        answer = {"number": number, "id": id}
        return Response(answer, status.HTTP_201_CREATED)
