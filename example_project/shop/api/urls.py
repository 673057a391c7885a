from __future__ import annotations

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from example_project.shop.api import viewsets

# The URL of an object is that of its list and its whole id, whatever the separator and
# the prefix: orders/orders/33-A/, invoices/invoices/7/.
router = DefaultRouter(use_regex_path=False)
router.register("customers", viewsets.CustomerViewSet)
router.register("products", viewsets.ProductViewSet)
router.register("orders", viewsets.OrderViewSet)
router.register("invoices", viewsets.InvoiceViewSet)

urlpatterns = [
    path("hilo/", include("django_hilo.rest_framework.urls")),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    # Split: the page has no script in it, and so suits a Content-Security-Policy.
    path("docs/", SpectacularSwaggerSplitView.as_view(), name="docs"),
    path("", include(router.urls)),
]
