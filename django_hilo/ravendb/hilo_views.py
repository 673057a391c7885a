"""The requests that RavenDB's clients send, for ranges and identities.

Identities are RavenDB's name for gapless numbers.
"""

import logging
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse, JsonResponse

from django_hilo._allocation.counter import Counter
from django_hilo._allocation.registry import home_of
from django_hilo._operations import edit_gapless, known_counters, lending
from django_hilo.conf import settings
from django_hilo.counters import gapless
from django_hilo.exceptions import RangeNotReturned
from django_hilo.identifiers import MAX_NUMBER, IdFormat, shown
from django_hilo.models import GaplessCounter
from django_hilo.ravendb import access
from django_hilo.ravendb.decorators import CALLER, endpoint
from django_hilo.ravendb.names import alias_of, gapless_counter_of, make_counter
from django_hilo.ravendb.protocol import (
    NextRange,
    Refusal,
    boolean_in,
    capacity_of,
    collection_in,
    format_last_range_at,
    integer_in,
)

logger = logging.getLogger("django_hilo")

# What the name of an identity ends in, given or not.
IDENTITY_END = "|"


@endpoint("GET", "/databases/{database}/hilo/next")
def next_range(request: HttpRequest, database: str) -> HttpResponse:
    """Reserve a range: 201, though it is a GET."""
    wanted = NextRange.read(request.GET)
    counter = known_counters.counter_of(wanted.tag, alias_of(database))
    # Not Django's now(), which has no zone if USE_TZ is False.
    capacity = capacity_of(wanted, datetime.now(UTC), *counter.capacities)
    minimum, caller = _bounded(wanted.last_max, counter), request.META[CALLER]
    make_counter(counter, caller)
    lent = lending.lend(
        counter,
        capacity.size,
        at_least=1,
        minimum=minimum,
        issuer=caller,
        capacity=capacity,
    )
    separator = wanted.separator or settings.SEPARATOR
    low, high = lent.range.low, lent.range.high
    body = {
        "Prefix": IdFormat.of(wanted.tag, separator, lent.server_prefix).start,
        "Low": low,
        "High": high,
        "LastSize": high - low + 1,
        # Clients put it after the number, and need some text.
        "ServerTag": counter.node_tag or settings.node_tag(counter.using),
        "LastRangeAt": format_last_range_at(datetime.now(UTC)),
    }
    return JsonResponse(body, status=201)


@endpoint("PUT", "/databases/{database}/hilo/return")
def return_range(request: HttpRequest, database: str) -> HttpResponse:
    """Take the unused end of the caller's range back: 204 in every case, as RavenDB."""
    tag = collection_in(request.GET, "tag")
    counter = known_counters.counter_of(tag, alias_of(database))
    end, last = integer_in(request.GET, "end"), integer_in(request.GET, "last")
    try:
        lending.take_back(counter, end, last, issuer=request.META[CALLER])
    except RangeNotReturned as refused:
        logger.debug("A RavenDB client could not return numbers: %s", refused)
    return HttpResponse(status=204)


@endpoint("GET", "/topology")
def topology(request: HttpRequest) -> HttpResponse:
    """Name this server as the only node, under the URL that the client uses."""
    if "HTTP_AUTHORIZATION" in request.META:
        # The Python client would go on with this URL, without its user and password.
        raise Refusal(
            404,
            "Raven.Client.Exceptions.Routing.RouteNotFoundException",
            "With HTTP Basic, clients must keep the URL that they were given.",
        )
    database = request.GET.get("name", "")
    base = request.build_absolute_uri(request.path).removesuffix("/topology")
    node = {
        "Url": base,
        "ClusterTag": settings.node_tag(home_of(alias_of(database))),
        "Database": database,
        "ServerRole": "Member",
    }
    return JsonResponse({"Nodes": [node], "Etag": 1})


@endpoint("POST", "/databases/{database}/identity/next")
def next_identity(request: HttpRequest, database: str) -> HttpResponse:
    """Take the next number, in no transaction of the client's."""
    name = collection_in(request.GET, "name", IDENTITY_END)
    counter = gapless_counter_of(name, database, request.META[CALLER])
    number = gapless.next_gapless_number(*counter)
    return JsonResponse({"NewIdentityValue": number})


@endpoint("POST", "/databases/{database}/identity/seed", access.SEED)
def seed_identity(request: HttpRequest, database: str) -> HttpResponse:
    """Set the last number, of an unknown collection too, and answer what it is then."""
    _, last = edit_gapless.seed_gapless(
        collection_in(request.GET, "name", IDENTITY_END),
        integer_in(request.GET, "value", least=0),
        force=boolean_in(request.GET, "force"),
        using=alias_of(database),
        user=request.user,
    )
    return JsonResponse({"NewSeedValue": last})


@endpoint("GET", "/databases/{database}/debug/identities", access.VIEW_IDENTITIES)
def identities(request: HttpRequest, database: str) -> HttpResponse:
    """List the last numbers by collection."""
    start = integer_in(request.GET, "start", 0, least=0)
    size = integer_in(request.GET, "pageSize", MAX_NUMBER, least=0)
    rows = GaplessCounter.objects.using(alias_of(database)).order_by("collection")
    counters = rows.values_list("collection", "last")[start:][:size]
    return JsonResponse({f"{name}{IDENTITY_END}": last for name, last in counters})


def _bounded(last_max: int, counter: Counter) -> int:
    """Return the number that a client says it knows, or raise `Refusal` for a jump.

    A number far over Max may be a mistake, which would use the counter up. If it is
    none, numbers under it are in use, so a lower one does not do either.
    """
    jump = settings.MAX_FLOOR_JUMP
    if last_max <= jump:
        return max(last_max, 0)
    known = counter.source.read_max(counter.using)
    if last_max > known + jump:
        text = (
            f"lastMax is {last_max}, more than {jump} (HILO['MAX_FLOOR_JUMP']) above "
            f"Max of {shown(counter.collection)}, which is {known}. If the counter "
            f"fell back, raise Max in the admin first."
        )
        logger.warning("RavenDB's hilo/next on %r was refused: %s", counter.using, text)
        raise Refusal(400, "System.InvalidOperationException", text)
    return last_max
