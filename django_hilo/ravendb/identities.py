"""The requests that RavenDB's clients send for identities, our gapless numbers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from django_hilo._operations import edit_counter
from django_hilo.counters import gapless
from django_hilo.models import GaplessCounter
from django_hilo.ravendb import access, protocol
from django_hilo.ravendb.databases import alias_of, gapless_counter_of
from django_hilo.ravendb.endpoints import endpoint
from django_hilo.ravendb.protocol import IdentityPage, NextIdentity, SeededIdentity


@endpoint("POST", "/databases/{database}/identity/next")
def next_identity(request: HttpRequest, database: str) -> HttpResponse:
    """Take the next number; what the client does with it is in no transaction."""
    wanted = NextIdentity.read(request.GET)
    collection, using = gapless_counter_of(wanted.collection, database)
    number = gapless.next_gapless_number(collection, using)
    return JsonResponse({"NewIdentityValue": number})


@endpoint("POST", "/databases/{database}/identity/seed", access.SEED)
def seed_identity(request: HttpRequest, database: str) -> HttpResponse:
    """Set the last number, of an unknown collection too; answer what it is then."""
    seed = SeededIdentity.read(request.GET)
    _, last = edit_counter.seed_gapless(
        seed.collection,
        seed.value,
        force=seed.force,
        using=alias_of(database),
        user=request.user,
    )
    return JsonResponse({"NewSeedValue": last})


@endpoint("GET", "/databases/{database}/debug/identities", access.VIEW_IDENTITIES)
def identities(request: HttpRequest, database: str) -> HttpResponse:
    """List the last numbers by collection."""
    page = IdentityPage.read(request.GET)
    rows = GaplessCounter.objects.using(alias_of(database)).order_by("collection")
    counters = rows.values_list("collection", "last")[page.start :][: page.size]
    return JsonResponse(protocol.identities_body(counters))
