"""Include these under any prefix, alone or with ``<str:token>/`` at its end."""

from __future__ import annotations

from django.urls import include, path, re_path

from django_hilo.ravendb.endpoints import not_found
from django_hilo.ravendb.views import next_range, return_range, topology

app_name = "django_hilo_ravendb"

_endpoints = [
    path("databases/<str:database>/hilo/next", next_range, name="next"),
    path("databases/<str:database>/hilo/return", return_range, name="return"),
    path("topology", topology, name="topology"),
]

urlpatterns = [
    *_endpoints,
    path("<str:token>/", include(_endpoints)),
    re_path("", not_found),
]
