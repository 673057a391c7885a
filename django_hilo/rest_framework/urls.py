"""The endpoints, for any prefix; needs ``django-hilo[drf]``.

``path("hilo/", include("django_hilo.rest_framework.urls"))``
"""

from django.apps import apps
from django.urls import path

from django_hilo.rest_framework import views

if apps.is_installed("drf_spectacular"):
    from django_hilo.rest_framework import schema

    schema.describe()

app_name = "django_hilo"

# A series may have a "/" in its name.
_document = "documents/<path:collection>/<str:node_tag>/"
_collection = "collections/<str:collection>/"

urlpatterns = [
    path("documents/", views.Counters.as_view(), name="documents"),
    path(_document, views.Counter.as_view(), name="document"),
    path(f"{_collection}next-id/", views.NextIds.as_view(), name="next-id"),
    path(f"{_collection}ranges/", views.Ranges.as_view(), name="ranges"),
    path(
        f"{_collection}ranges/return/", views.RangeReturn.as_view(), name="range-return"
    ),
    path("prefixes/", views.Prefixes.as_view(), name="prefixes"),
    path("prefixes/<str:node_tag>/", views.Prefix.as_view(), name="prefix"),
    path(
        "gapless/<str:collection>/next/",
        views.NextGaplessNumber.as_view(),
        name="gapless-next",
    ),
]
