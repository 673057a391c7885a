"""The frame of all endpoints: access, errors as JSON, and nothing stored or logged.

The path may contain a token, and Django logs the path of failed requests. So no
exception leaves an endpoint, and Django logs none of its answers.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables

from django_hilo._operations.lending import BUSY
from django_hilo.exceptions import CounterExhausted, RangeNotLent
from django_hilo.ravendb.access import TAKE_IDS, check_access
from django_hilo.ravendb.protocol import Refusal, error_body

logger = logging.getLogger("django_hilo")

P = ParamSpec("P")
View = Callable[..., HttpResponse]

# The key of ``request.META`` that has the mark of the caller.
CALLER = "django_hilo.caller"

# Of the URL, in errors: whole for every name that is allowed.
_SHOWN = 500


def endpoint(
    method: str, route: str, permission: str = TAKE_IDS
) -> Callable[[Callable[Concatenate[HttpRequest, P], HttpResponse]], View]:
    """Make a view of ``view(request, **names)`` that raises `Refusal` to refuse.

    ``route`` is the path after the prefix, with the names in braces.
    """

    def decorate(view: Callable[Concatenate[HttpRequest, P], HttpResponse]) -> View:
        # Tracebacks in mails and error trackers show variables, and these the path.
        @sensitive_variables()
        @wraps(view)
        def answer(
            request: HttpRequest, token: str | None = None, **captured: Any
        ) -> HttpResponse:
            # A site may have names of its own in the prefix, such as a tenant's.
            names = {k: v for k, v in captured.items() if f"{{{k}}}" in route}
            try:
                if request.method != method:
                    text = f"Only {method} is allowed here."
                    kind = "System.NotSupportedException"
                    raise Refusal(405, kind, text, Allow=method)
                request.META[CALLER] = check_access(request, token, permission)
                response = view(request, **names)  # type: ignore[call-arg] # the route's names
            except Exception as error:  # noqa: BLE001 - Django would log the path
                response = _error(_refusal(error, route), _url(request, route, names))
            return _unstored(response)

        return _opened(answer)

    return decorate


@sensitive_variables()
def not_found(request: HttpRequest, **names: str) -> HttpResponse:
    """Answer 404 in JSON: Django's own answer would log the path, and redirect."""
    refusal = Refusal(
        404,
        "Raven.Client.Exceptions.Routing.RouteNotFoundException",
        "The paths here are topology and, under databases/{name}/, hilo/next, "
        "hilo/return, identity/next, identity/seed and debug/identities, without a "
        "'/' at the end.",
    )
    return _unstored(_error(refusal, "/"))


def _opened(view: View) -> View:
    """Exempt a view from CSRF tokens, logins and ATOMIC_REQUESTS.

    Numbers are committed inside the view: a COMMIT that fails after it would be an
    error that Django logs.
    """
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return csrf_exempt(login_not_required(view))


not_found = _opened(not_found)


def _unstored(response: HttpResponse) -> HttpResponse:
    # "no-store" keeps ETags off, "private" the cache of Django's older releases.
    response["Cache-Control"] = "no-store, private"
    return response


def _error(refusal: Refusal, url: str) -> HttpResponse:
    body = error_body(url, refusal.type, str(refusal))
    response = JsonResponse(body, status=refusal.status, headers=refusal.headers)
    response._has_been_logged = True  # type: ignore[attr-defined] # the stubs lack it
    return response


def _refusal(error: Exception, route: str) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, PermissionDenied):
        type = "Raven.Client.Exceptions.Security.AuthorizationException"
        return Refusal(403, type, "Access was denied.")
    if isinstance(error, SuspiciousOperation):
        logger.warning("RavenDB's %s was refused: %s", route, error)
        return Refusal(400, "System.ArgumentException", str(error))
    if isinstance(error, BUSY):
        # The text may tell of hosts and ports.
        logger.warning("RavenDB's %s failed: %s", route, error)
        told = "The database is busy or unavailable; try again."
        return Refusal(503, "System.TimeoutException", told)
    if isinstance(error, (CounterExhausted, RangeNotLent)):
        logger.warning("RavenDB's %s failed: %s", route, error)
        return Refusal(400, "System.InvalidOperationException", str(error))
    logger.exception("RavenDB's %s failed", route)
    told = "The request failed; see the server's log for the reason."
    return Refusal(500, "System.InvalidOperationException", told)


def _url(request: HttpRequest, route: str, names: dict[str, Any]) -> str:
    query = request.META.get("QUERY_STRING", "")
    url = route.format(**names) + (f"?{query}" if query else "")
    return url if len(url) <= _SHOWN else f"{url[:_SHOWN]}..."
