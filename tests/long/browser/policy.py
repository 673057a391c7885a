from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


def strict(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Allow the admin no scripts and styles but those of static files."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path.startswith("/admin/"):
            response["Content-Security-Policy"] = "default-src 'self'"
        return response

    return middleware
