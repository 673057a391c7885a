"""System checks of shards; each id is explained in docs/checks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import models

from django_hilo.conf import settings
from django_hilo.sharding.router import ShardRouter, key_field, shard_router
from django_hilo.sharding.shards import read_shards


def are_shards(value: Any) -> bool:
    """Whether a value of ``HILO["SHARDS"]`` says for each id where it belongs."""
    try:
        return value == {} or bool(read_shards(value))
    except (ImproperlyConfigured, TypeError, AttributeError):
        return False


def check_shards(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check what shards need, and the models whose rows they share."""
    if not settings.SHARDS:
        return []
    router = shard_router()
    if router is None:
        return [
            checks.Error(
                "HILO['SHARDS'] is set, but nothing sends the rows to the shards.",
                hint="Add 'django_hilo.sharding.ShardRouter', or a subclass, to "
                "DATABASE_ROUTERS.",
                id="django_hilo.E014",
            )
        ]
    found: list[checks.CheckMessage] = []
    if settings.DATABASE is None:
        found.append(
            checks.Error(
                "HILO['SHARDS'] is set, but no database is named for the counters: "
                "each shard would give the same ids.",
                hint="Set HILO['DATABASE'] to the alias of one that is not SQLite.",
                id="django_hilo.E013",
            )
        )
    for model in apps.get_models():
        if not model._meta.proxy and router.is_sharded(model):
            found += _check_model(model, router)
    return found


def _check_model(
    model: type[models.Model], router: ShardRouter
) -> Iterator[checks.CheckMessage]:
    for field in model._meta.local_concrete_fields:
        if router.crosses(field) and not _is_anchored(model, field):
            yield checks.Warning(
                f"{field} refers to rows that may be on other shards: saving such an "
                f"object raises ShardError.",
                hint=f'Anchor the one to the other, HiLoField(anchor="{field.name}"), '
                f"or set db_constraint=False and keep the id alone.",
                obj=field,
                id="django_hilo.W016",
            )


def _is_anchored(model: type[models.Model], relation: Any) -> bool:
    """Whether the ids of a model end as those of the related model do."""
    anchor: Any = getattr(key_field(model), "anchor", None)
    if not isinstance(anchor, str):
        return callable(anchor)  # nobody knows; saving looks
    first, _, rest = anchor.partition("__")
    related: Any = key_field(relation.remote_field.model)
    return first == relation.name and rest in ("", getattr(related, "anchor", None))
