from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("example_project.shop.api.urls")),
    path("raven/", include("django_hilo.ravendb.urls")),
    path("", include("example_project.shop.urls")),
]
