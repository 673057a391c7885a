"""Permissions and rates of the endpoints."""

from typing import Any, cast

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import UserRateThrottle


class HasPermissionOfMethod(BasePermission):
    """Allow active users with the permission that the view's ``needs`` names.

    ``needs`` maps methods to permissions. Methods that it does not name (OPTIONS, and
    those that will be refused) are open to users with any of its permissions.
    Anonymous callers are refused, whatever DRF's settings give them as a user.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if user is None or not user.is_authenticated or not user.is_active:
            return False
        method = "GET" if request.method == "HEAD" else request.method
        if method in view.needs:
            return bool(user.has_perm(view.needs[method]))
        return any(user.has_perm(needed) for needed in set(view.needs.values()))


class HiLoThrottle(UserRateThrottle):
    """Limit each user, over all endpoints, to ``DEFAULT_THROTTLE_RATES["hilo"]``.

    Without that rate there is no limit.
    """

    scope = "hilo"

    def get_rate(self) -> str | None:
        # As the settings have it now.
        rates = api_settings.DEFAULT_THROTTLE_RATES
        return cast("str | None", rates.get(self.scope))
