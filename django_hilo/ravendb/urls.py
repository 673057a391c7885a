"""Include these under any prefix, alone or with ``<str:token>/`` at its end."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from django_hilo.ravendb.endpoints import not_found
from django_hilo.ravendb.identities import identities, next_identity, seed_identity
from django_hilo.ravendb.views import next_range, return_range, topology

app_name = "django_hilo_ravendb"

_of_a_database = [
    path("hilo/next", next_range, name="next"),
    path("hilo/return", return_range, name="return"),
    path("identity/next", next_identity, name="next-identity"),
    path("identity/seed", seed_identity, name="seed-identity"),
    path("debug/identities", identities, name="identities"),
]

_endpoints: list[URLPattern | URLResolver] = [
    path("databases/<str:database>/", include(_of_a_database)),
    path("topology", topology, name="topology"),
]

urlpatterns = [
    *_endpoints,
    path("<str:token>/", include(_endpoints)),
    re_path("", not_found),
]
