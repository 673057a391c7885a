"""The base of all endpoints; a project's defaults of DRF do not weaken it."""

from typing import Any, ClassVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from django_hilo._allocation.registry import home_of
from django_hilo.rest_framework import bodies, queries
from django_hilo.rest_framework.access import HasPermissionOfMethod, HiLoThrottle
from django_hilo.rest_framework.errors import as_api_exception
from django_hilo.rest_framework.listing import CounterPagination


class HiLoView(GenericAPIView[Any]):
    """Checks permissions, queries and bodies; answers are never cached."""

    needs: ClassVar[dict[str, str]]
    query_class: type[BaseSerializer[Any]] = queries.DatabaseQuery
    permission_classes = [HasPermissionOfMethod]
    throttle_classes = [HiLoThrottle]
    parser_classes = bodies.PARSERS
    versioning_class = None
    filter_backends = []
    pagination_class: type[BasePagination] | None = None
    query: dict[str, Any] = {}

    # Error pages and mails show variables, and forms: a ticket may be among them.
    @sensitive_variables()
    @method_decorator(sensitive_post_parameters("ticket"))
    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the query, after the permission and if the method is known."""
        super().initial(request, *args, **kwargs)
        if request.query_params and request.method in self.allowed_methods:
            query = self.query_class(data=request.query_params.dict())
            query.is_valid(raise_exception=True)
            self.query = query.validated_data

    def perform_authentication(self, request: Request) -> None:
        """Check the body's length first: the check of CSRF tokens reads forms."""
        bodies.check_length(request)
        super().perform_authentication(request)

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(as_api_exception(exc))

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Keep every answer, errors included, out of caches."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        return answer

    @property
    def database(self) -> str | None:
        """The alias in the query."""
        return self.query.get("database")

    @property
    def home(self) -> str:
        """The alias in the query, or the home database."""
        return self.database or home_of(DEFAULT_DB_ALIAS)

    def sent(self) -> dict[str, Any]:
        """Return the validated body, or raise ValidationError."""
        serializer = self.get_serializer(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        bodies.check_keys(self.request.data, getattr(serializer, "fields", ()))
        data: dict[str, Any] = serializer.validated_data
        return data


class HiLoListView(HiLoView, ListAPIView[Any]):
    """Rows of one database, in pages."""

    model: ClassVar[type[Model]]
    query_class = queries.PageQuery
    pagination_class = CounterPagination

    def get_queryset(self) -> QuerySet[Any]:
        return self.model._default_manager.using(self.home)
