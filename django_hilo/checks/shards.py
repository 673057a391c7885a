"""System checks of shards; each id is explained in docs/reference/checks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import models, router

from django_hilo._allocation.target import CounterField, Unplaced, home_of
from django_hilo.conf import settings
from django_hilo.managers import HiLoQuerySet
from django_hilo.sharding.router import ShardRouter, root_of, shard_router
from django_hilo.sharding.shards import read_shards, shards


def are_shards(value: Any) -> bool:
    """Whether a value of ``HILO["SHARDS"]`` says for each id where it belongs."""
    return fault_of(value) == ""


def fault_of(value: Any) -> str:
    """Return what is wrong with a value of ``HILO["SHARDS"]``; "" where nothing is."""
    try:
        if value != {}:
            read_shards(value)
    except ImproperlyConfigured as error:
        return str(error)
    return ""


def check_shards(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check what shards need, and the models whose rows they share."""
    if not settings.SHARDS or not are_shards(settings.SHARDS):
        return []
    spreading = shard_router()
    if spreading is None:
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
    found += _check_order(spreading)
    for model in apps.get_models():
        found += _check_manager(model, spreading)
        if not model._meta.proxy:
            for check in (_check_key, _check_parents, _check_relations, _check_unique):
                found += check(model, spreading)
    return found


def _check_order(spreading: ShardRouter) -> Iterator[checks.CheckMessage]:
    hidden = [
        model._meta.label
        for model in apps.get_models()
        if spreading.spreads(model)
        and not (
            isinstance(router.db_for_read(model), Unplaced)
            and isinstance(router.db_for_write(model), Unplaced)
        )
    ]
    if hidden:
        yield checks.Error(
            f"Another router says where the rows of {', '.join(hidden)} are, before "
            f"ShardRouter is asked.",
            hint="Put ShardRouter first in DATABASE_ROUTERS.",
            id="django_hilo.E018",
        )


def _check_manager(
    model: type[models.Model], spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    if spreading.spreads(model) and not isinstance(
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


def _check_key(
    model: type[models.Model], spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    parts: Any = model._meta.pk_fields
    if len(parts) > 1 and any(isinstance(part, CounterField) for part in parts):
        yield checks.Error(
            f"The rows of {model._meta.label} are not spread over shards: its key is "
            f"a CompositePrimaryKey.",
            hint="Make the HiLoField alone the primary_key.",
            obj=model,
            id="django_hilo.E019",
        )


def _check_parents(
    model: type[models.Model], spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    for parent, link in model._meta.parents.items():
        if link is None or link.primary_key:
            continue
        if spreading.spreads(model) or spreading.spreads(parent):
            yield checks.Error(
                f"A row of {model._meta.label} and its row of {parent._meta.label} "
                f"have ids of their own, which may belong to two shards.",
                hint=f"Leave the key to the link to {parent._meta.label}, or refer to "
                f"it by a OneToOneField.",
                obj=model,
                id="django_hilo.E020",
            )


def _check_relations(
    model: type[models.Model], spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    for field in _relations(model):
        key = _foreign_key(field)
        if _is_anchored(model, field):
            yield from _check_prefixes(model, field, spreading)
        elif spreading.crosses(key) and spreading.spreads(model):
            yield checks.Warning(
                f"{field} refers to rows that may be on other shards: relations to "
                f"those are refused.",
                hint=f'Anchor the one to the other, HiLoField(anchor="{field.name}"), '
                f"or set db_constraint=False and keep the id alone.",
                obj=field,
                id="django_hilo.W016",
            )
        elif spreading.crosses(key):
            yield checks.Warning(
                f"{field} refers to rows on shards, but {model._meta.label} itself is "
                f"not spread: its rows have no shard of their own.",
                hint="Set db_constraint=False, or say by a router of your own where "
                "the rows of this model are.",
                obj=field,
                id="django_hilo.W016",
            )
        elif _reaches_by_on_delete(field, spreading):
            yield checks.Warning(
                f"{field} may refer to rows of other databases, and its on_delete "
                f"reaches the rows of one alone: per shard only.",
                hint="Set on_delete=models.DO_NOTHING, and delete what refers to a row "
                "on each database yourself.",
                obj=field,
                id="django_hilo.W022",
            )


def _check_prefixes(
    model: type[models.Model], field: Any, spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    key: Any = root_of(model)._meta.pk
    related: Any = root_of(field.remote_field.model)
    target = related._meta.pk
    if callable(key.anchor) or not spreading.spreads(related):
        return
    if key.convention or getattr(target, "convention", None):
        return  # nobody knows how these ids start
    mine, its = (
        f"{each.collection_name}{settings.SEPARATOR}" for each in (key, target)
    )
    if shards().ranges_of(mine) != shards().ranges_of(its):
        yield checks.Warning(
            f"{field} refers to the rows that its own are anchored to, but the "
            f"prefixes in HILO['SHARDS'] give {mine!r} and {its!r} different shards.",
            hint=f"Have both {mine!r} and {its!r} there, with the same shards, or "
            f"none of the two.",
            obj=field,
            id="django_hilo.W021",
        )


def _reaches_by_on_delete(field: Any, spreading: ShardRouter) -> bool:
    """Whether deleting a spread row would touch, or look for, rows elsewhere."""
    return (
        isinstance(field, models.ForeignKey)
        and not field.db_constraint  # type: ignore[attr-defined]
        and not field.primary_key
        and field.remote_field.on_delete is not models.DO_NOTHING
        and spreading.spreads(field.related_model)
    )


def _check_unique(
    model: type[models.Model], spreading: ShardRouter
) -> Iterator[checks.CheckMessage]:
    if not spreading.spreads(model):
        return
    meta: Any = model._meta
    unique = [(field.name,) for field in _own_fields(model) if field.unique]
    unique += map(tuple, meta.unique_together)
    unique += (each.fields for each in meta.total_unique_constraints)
    for names in unique:
        if not any(_keeps_apart(model, meta.get_field(name)) for name in names):
            yield checks.Warning(
                f"{', '.join(names)} of {meta.label}: unique per shard only, as its "
                f"rows are spread over several.",
                hint="Where it must hold on all, keep these values in a model that is "
                "not spread, or silence this.",
                obj=model,
                id="django_hilo.W023",
            )


def _keeps_apart(model: type[models.Model], field: Any) -> bool:
    """Whether rows of different shards cannot have the same value."""
    if field.primary_key or isinstance(field, CounterField):
        return True
    return field.remote_field is not None and _is_anchored(model, field)


def _relations(model: type[models.Model]) -> list[Any]:
    many: Any = model._meta.local_many_to_many
    own = [each for each in many if each.remote_field.through._meta.auto_created]
    return [*(each for each in _own_fields(model) if each.remote_field), *own]


def _own_fields(model: type[models.Model]) -> list[Any]:
    links = model._meta.parents.values()
    return [field for field in model._meta.local_fields if field not in links]


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
