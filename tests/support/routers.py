from typing import Any


class CountersOnOther:
    """Names the home database of all counters."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "django_hilo" else None


class OrdersOnOther:
    """Sends the rows of one model elsewhere, and says nothing of counters."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.object_name == "Order" else None


class Silent:
    """Has no opinion, and no method to ask for one."""
