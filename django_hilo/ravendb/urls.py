"""Include these under any prefix, alone or with ``<str:token>/`` at its end."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from django_hilo.ravendb import hilo_views
from django_hilo.ravendb.decorators import not_found

app_name = "django_hilo_ravendb"

_of_a_database = [
    path("hilo/next", hilo_views.next_range, name="next"),
    path("hilo/return", hilo_views.return_range, name="return"),
    path("identity/next", hilo_views.next_identity, name="next-identity"),
    path("identity/seed", hilo_views.seed_identity, name="seed-identity"),
    path("debug/identities", hilo_views.identities, name="identities"),
]

_endpoints: list[URLPattern | URLResolver] = [
    path("databases/<str:database>/", include(_of_a_database)),
    path("topology", hilo_views.topology, name="topology"),
]

urlpatterns = [
    *_endpoints,
    path("<str:token>/", include(_endpoints)),
    re_path("", not_found),
]
