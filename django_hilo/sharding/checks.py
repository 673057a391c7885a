"""System checks of shards; each id is explained in docs/checks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import models

from django_hilo.conf import settings
from django_hilo.managers import HiLoQuerySet
from django_hilo.sharding.router import ShardRouter, root_of, shard_router
from django_hilo.sharding.shards import read_shards, shards
from django_hilo.targets import home_of


def are_shards(value: Any) -> bool:
    """Whether a value of ``HILO["SHARDS"]`` says for each id where it belongs."""
    try:
        return value == {} or bool(read_shards(value))
    except ImproperlyConfigured:
        return False


def check_shards(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check what shards need, and the models whose rows they share."""
    if not settings.SHARDS or not are_shards(settings.SHARDS):
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
    if len({home_of(alias) for alias in shards().aliases}) > 1:
        found.append(
            checks.Error(
                "HILO['SHARDS'] is set, but no database is named for the counters: "
                "each shard would give the same ids.",
                hint="Set HILO['DATABASE'] to the alias of one that is not SQLite.",
                id="django_hilo.E013",
            )
        )
    for model in apps.get_models():
        found += _check_manager(model, router)
        if not model._meta.proxy:
            found += _check_relations(model, router)
    return found


def _check_manager(
    model: type[models.Model], router: ShardRouter
) -> Iterator[checks.CheckMessage]:
    if router.spreads(model) and not isinstance(
        model._default_manager.all(), HiLoQuerySet
    ):
        yield checks.Error(
            f"The rows of {model._meta.label} are spread over shards, but its default "
            f"manager is no HiLoManager: queries that name no shard would look on one "
            f"of them, and say nothing.",
            hint="Set objects = HiLoManager(), or build the manager from HiLoQuerySet.",
            obj=model,
            id="django_hilo.E017",
        )


def _check_relations(
    model: type[models.Model], router: ShardRouter
) -> Iterator[checks.CheckMessage]:
    for field in _relations(model):
        if not _is_anchored(model, field) and router.crosses(_foreign_key(field)):
            yield checks.Warning(
                f"{field} refers to rows that may be on other shards: relations to "
                f"those are refused.",
                hint=f'Anchor the one to the other, HiLoField(anchor="{field.name}"), '
                f"or set db_constraint=False and keep the id alone.",
                obj=field,
                id="django_hilo.W016",
            )


def _relations(model: type[models.Model]) -> list[Any]:
    many: Any = model._meta.local_many_to_many
    own = [each for each in many if each.remote_field.through._meta.auto_created]
    return [*model._meta.local_fields, *own]


def _foreign_key(field: Any) -> Any:
    """Return the field itself, or what a table of many-to-many refers with."""
    if not field.many_to_many:
        return field
    through = field.remote_field.through._meta
    return through.get_field(field.m2m_reverse_field_name())


def _is_anchored(model: type[models.Model], relation: Any) -> bool:
    """Whether the ids of a model end as those of the related model do."""
    anchor: Any = getattr(root_of(model)._meta.pk, "anchor", None)
    if not isinstance(anchor, str):
        return callable(anchor)  # nobody knows; saving looks
    first, _, rest = anchor.partition("__")
    if first != relation.name:
        return False
    related: Any = root_of(relation.remote_field.model)._meta.pk
    return rest in ("", getattr(related, "anchor", None))
