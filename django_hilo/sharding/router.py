"""The database router of shards, for ``DATABASE_ROUTERS``."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db import models, router

from django_hilo.anchors import anchor_of
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, ShardError
from django_hilo.sharding.shards import shard_of, shards
from django_hilo.targets import CounterField, Unplaced, home_of


class ShardRouter:
    """Sends objects to the shard of their ids, as ``HILO["SHARDS"]`` has them.

    A new object goes to the shard of its bucket, its later saves and what is anchored
    to it too. Models without a HiLo key are left to other routers.
    """

    def is_sharded(self, model: type[models.Model]) -> bool:
        """Whether the rows of a model are spread: those with a HiLo key.

        Override it to keep a model's rows together, on every shard or elsewhere. The
        rows of a many-to-many relation go with the model that has the field.
        """
        owner: Any = model._meta.auto_created
        if owner:
            return self.is_sharded(owner)
        return isinstance(key_field(model), CounterField)

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str | None:
        return self._database(model, hints.get("instance"))

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str | None:
        return self._database(model, hints.get("instance"))

    def allow_relation(
        self, obj1: models.Model, obj2: models.Model, **hints: Any
    ) -> bool | None:
        if not settings.SHARDS:
            return None
        sharded = [self.is_sharded(type(each)) for each in (obj1, obj2)]
        if not any(sharded):
            return None
        if not all(sharded):
            # Tables that each shard has a copy of.
            other = type(obj2 if sharded[0] else obj1)
            copied = all(
                router.allow_migrate_model(alias, other) for alias in shards().aliases
            )
            return copied or None
        first, second = self.shard_of(obj1), self.shard_of(obj2)
        if first and second and first != second:
            raise ShardError(
                f"{obj1!r} is on the shard {first!r}, {obj2!r} on {second!r}: {_ADVICE}"
            )
        return True  # saving looks again, when both have ids

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        if not settings.SHARDS or not model_name:
            return None
        model = hints.get("model") or apps.get_model(app_label, model_name)
        return db in shards().aliases if self.is_sharded(model) else None

    def _database(
        self, model: type[models.Model], instance: models.Model | None
    ) -> str | None:
        if not settings.SHARDS or not self.is_sharded(model):
            return None
        shard = None
        if instance is not None and self.is_sharded(type(instance)):
            shard = self.shard_of(instance)
        return shard or Unplaced(home_of(shards().aliases[0]))

    def shard_of(self, instance: models.Model) -> str | None:
        """Return the shard of a sharded object, None where it has no id or anchor."""
        id = id_of(instance)
        if id:
            return shard_of(id)
        field: Any = key_field(type(instance))
        anchor = getattr(field, "anchor", None)
        if anchor is None or field.convention is not None:
            return None
        try:
            start = f"{field.collection_name}{settings.SEPARATOR}"
            return shard_of(f"{start}${anchor_of(instance, anchor)}")
        except HiLoError:
            return None

    def place(self, instance: models.Model, using: str) -> str:
        """Return the shard to insert an object on that has its id by now.

        Raises `ShardError` where ``using`` is another one, or a foreign key leaves it.
        """
        id = id_of(instance)
        assert id is not None
        shard = shard_of(id)
        if not isinstance(using, Unplaced) and using != shard:
            raise ShardError(
                f"{type(instance)._meta.label} {id!r} belongs to the shard {shard!r}, "
                f"not to {using!r}. Save it without using=; what is created through a "
                f"relation must be anchored to its object, as "
                f'HiLoField(anchor="order").'
            )
        for field in type(instance)._meta.concrete_fields:
            if self.crosses(field):
                value = getattr(instance, field.attname)
                if value is not None and shard_of(str(value)) != shard:
                    raise ShardError(
                        f"{type(instance)._meta.label} {id!r} belongs to the shard "
                        f"{shard!r}, and {field.name} {value!r} to "
                        f"{shard_of(str(value))!r}: {_ADVICE}"
                    )
        return shard

    def crosses(self, field: Any) -> bool:
        """Whether a field is a foreign key that may lead to another shard."""
        return (
            isinstance(field, models.ForeignKey)
            and field.db_constraint  # type: ignore[attr-defined]
            and not field.remote_field.parent_link
            and field.target_field.primary_key
            and self.is_sharded(field.related_model)
        )


_ADVICE = (
    "a foreign key cannot reach another database. Anchor the one to the other, as in "
    'HiLoField(anchor="order"), or keep its id alone: a ForeignKey with '
    "db_constraint=False, set by its _id."
)


def key_field(model: type[models.Model]) -> models.Field[Any, Any]:
    """Return the field that a model's key comes from: with parents, the first one's."""
    field = model._meta.pk
    while field.remote_field and field.remote_field.parent_link:
        field = field.remote_field.model._meta.pk
    return field


def id_of(instance: models.Model) -> str | None:
    """Return the id of an object, None where it has none yet."""
    field: Any = key_field(type(instance))
    return getattr(instance, field.attname, None) or instance.pk or None


def shard_router() -> ShardRouter | None:
    """Return the ShardRouter of the settings, where there are shards."""
    if not settings.SHARDS:
        return None
    found = (each for each in router.routers if isinstance(each, ShardRouter))
    return next(found, None)
