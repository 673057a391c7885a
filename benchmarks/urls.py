from __future__ import annotations

from typing import Any, ClassVar

from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_hilo.rest_framework.access import HasPermissionOfMethod
from django_hilo.rest_framework.views import TAKE_IDS


class Constant(APIView):
    """What next-id answers with, but for the ids: the same each time."""

    needs: ClassVar = {"POST": TAKE_IDS}
    permission_classes = [HasPermissionOfMethod]

    def post(self, request: Request) -> Response:
        """Return an answer of the same size."""
        answer: dict[str, Any] = {
            "collection": "orders",
            "numbers": [100_000],
            "ids": ["orders/100000-A"],
        }
        return Response(answer, 201)


class Open(Constant):
    """The same for everybody."""

    authentication_classes: ClassVar = []
    permission_classes: ClassVar = []


urlpatterns = [
    path("hilo/", include("django_hilo.rest_framework.urls")),
    path("constant/", Constant.as_view()),
    path("open/", Open.as_view()),
]
