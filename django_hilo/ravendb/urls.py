"""Include these under any prefix, alone or with ``<str:token>/`` at its end."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from django_hilo.ravendb import views
from django_hilo.ravendb.endpoints import not_found

app_name = "django_hilo_ravendb"

_of_a_database = [
    path("hilo/next", views.next_range, name="next"),
    path("hilo/return", views.return_range, name="return"),
    path("identity/next", views.next_identity, name="next-identity"),
    path("identity/seed", views.seed_identity, name="seed-identity"),
    path("debug/identities", views.identities, name="identities"),
]

_endpoints: list[URLPattern | URLResolver] = [
    path("databases/<str:database>/", include(_of_a_database)),
    path("topology", views.topology, name="topology"),
]

urlpatterns = [
    *_endpoints,
    path("<str:token>/", include(_endpoints)),
    re_path("", not_found),
]
