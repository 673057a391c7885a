from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

VIEW_DOCUMENTS = "django_hilo.view_hilodocument"
CHANGE_DOCUMENTS = "django_hilo.change_hilodocument"
TAKE_IDS = "django_hilo.take_hilo_ids"
VIEW_PREFIXES = "django_hilo.view_serverprefix"
CHANGE_PREFIXES = "django_hilo.change_serverprefix"


class HasPermissionOfMethod(BasePermission):
    """Allow active users with the permission that the view's ``needs`` names.

    ``needs`` maps methods to permissions. Methods that it does not name (OPTIONS, and
    those that will be refused) are open to who may use any of the others. Anonymous
    callers are refused whatever stands for them.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the caller may use the method."""
        user: Any = request.user
        if user is None or not user.is_authenticated or not user.is_active:
            return False
        method = "GET" if request.method == "HEAD" else request.method
        if method in view.needs:
            return bool(user.has_perm(view.needs[method]))
        return any(user.has_perm(needed) for needed in set(view.needs.values()))
