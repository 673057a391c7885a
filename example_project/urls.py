from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("example_project.shop.api.urls")),
    path("raven/", include("django_hilo.ravendb.urls")),
    # Browsers ask for it on the pages of the admin and the API, which name none.
    path("favicon.ico", RedirectView.as_view(url=static("shop/favicon.svg"))),
    path("", include("example_project.shop.urls")),
]
