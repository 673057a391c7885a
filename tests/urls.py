from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("hilo/", include("django_hilo.rest_framework.urls")),
    path("admin/", admin.site.urls),
    path("raven/", include("django_hilo.ravendb.urls")),
]
