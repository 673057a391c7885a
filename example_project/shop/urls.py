from __future__ import annotations

from django.urls import path

from example_project.shop import views

app_name = "shop"
urlpatterns = [
    path("", views.front, name="front"),
    path("readme/", views.readme, name="readme"),
    path("customers/", views.customers, name="customers"),
    path("products/", views.products, name="products"),
    path("orders/", views.orders, name="orders"),
    # Not orders/<hilo:pk>/: the ids start with "orders/" themselves.
    path("order/<hilo:pk>/", views.order, name="order"),
    path("invoice/<hilo:pk>/", views.invoice, name="invoice"),
]
