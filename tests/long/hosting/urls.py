from django.urls import path

from tests.long.hosting import views

urlpatterns = [
    path("create", views.create),
    path("create-in-atomic", views.create_in_atomic),
    path("roll-back", views.roll_back),
    path("acreate", views.acreate),
    path("anext", views.anext),
    path("without-database", views.without_database),
]
