"""System checks; each is explained in docs/reference/checks.md.

Their modules are imported when checks run, which the workers of a server never do.
"""

from importlib import import_module
from typing import Any

from django.core import checks


def _of(module: str, name: str) -> Any:
    def check(**kwargs: Any) -> list[checks.CheckMessage]:
        found = import_module(f"django_hilo.checks.{module}")
        return list(getattr(found, name)(**kwargs))

    check.__qualname__ = name
    return check


# Made once: Django registers a function that it knows no second time.
_ALWAYS = {
    _of("settings", "check_settings"): "django_hilo",
    _of("databases", "check_homes"): "django_hilo",
    _of("fields", "check_fields"): checks.Tags.models,
    _of("models", "check_integers"): checks.Tags.models,
    _of("models", "check_managers"): checks.Tags.models,
    _of("databases", "check_hidden_tags"): checks.Tags.database,
    _of("renamed", "check_renamed"): checks.Tags.database,
    _of("sources", "check_missing"): checks.Tags.models,
    _of("sources", "check_sources"): checks.Tags.database,
    _of("sources", "check_other_writers"): checks.Tags.database,
}
_BEFORE_DEPLOYMENT = _of("deployment", "check_servers")


def register() -> None:
    """Register the checks; called by ``AppConfig.ready()``."""
    for check, tag in _ALWAYS.items():
        checks.register(check, tag)
    checks.register(_BEFORE_DEPLOYMENT, "django_hilo", deploy=True)
