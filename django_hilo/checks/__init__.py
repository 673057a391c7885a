"""System checks; each is explained in docs/checks.md."""

from __future__ import annotations

from django.core import checks

from django_hilo.checks.databases import check_hidden_tags, check_homes
from django_hilo.checks.models import check_collections, check_integers, check_managers
from django_hilo.checks.servers import check_servers
from django_hilo.checks.settings import check_settings
from django_hilo.checks.sources import check_other_writers, check_sources
from django_hilo.sharding.checks import check_shards


def register() -> None:
    """Register the checks; called by ``AppConfig.ready()``."""
    for check in check_settings, check_homes:
        checks.register(check, "django_hilo")
    for check in check_collections, check_integers, check_managers, check_shards:
        checks.register(check, checks.Tags.models)
    for check in check_hidden_tags, check_sources, check_other_writers:
        checks.register(check, checks.Tags.database)
    checks.register(check_servers, "django_hilo", deploy=True)
