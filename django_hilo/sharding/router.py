"""The database router of shards, for ``DATABASE_ROUTERS``."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import models, router

from django_hilo._allocation.target import CounterField, Unplaced, home_of
from django_hilo.conf import settings
from django_hilo.exceptions import ShardError
from django_hilo.sharding.shards import shard_of, shards


class ShardRouter:
    """Sends objects to the shard of their ids, as ``HILO["SHARDS"]`` has them.

    A new object goes to the shard of its bucket, its later saves and what is anchored
    to it too. Models without a HiLo key are left to other routers.
    """

    def is_sharded(self, model: type[models.Model]) -> bool:
        """Whether the rows of a model are spread: those with a HiLo key.

        Override it to keep a model's rows together, on every shard or elsewhere. It is
        not asked for proxies, children, many-to-many tables and models whose key is
        that of another: their rows go with those that they belong to.
        """
        key = model._meta.pk
        return isinstance(key, CounterField) and not key.is_integer

    def spreads(self, model: type[models.Model]) -> bool:
        """Whether the rows of a model, or of the one they belong to, are spread."""
        return self.is_sharded(root_of(model))

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str | None:
        return self._database(model, hints.get("instance"))

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str | None:
        return self._database(model, hints.get("instance"))

    def allow_relation(
        self, obj1: models.Model, obj2: models.Model, **hints: Any
    ) -> bool | None:
        if not settings.SHARDS:
            return None
        spread = [self.spreads(type(each)) for each in (obj1, obj2)]
        if not any(spread):
            return None
        if not all(spread):
            # Tables that each shard has a copy of.
            other = type(obj2 if spread[0] else obj1)
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
        try:
            model = hints.get("model") or apps.get_model(app_label, model_name)
        except LookupError:  # a hint in an old migration
            return None
        if not self.spreads(model):
            return None
        try:
            return db in shards().aliases
        except ImproperlyConfigured:
            return None  # E012 tells, which an error here would hide

    def _database(
        self, model: type[models.Model], instance: models.Model | None
    ) -> str | None:
        if not settings.SHARDS or not self.spreads(model):
            return None
        shard = None if instance is None else self._shard_near(model, instance)
        return shard or Unplaced(home_of(shards().aliases[0]))

    def _shard_near(
        self, model: type[models.Model], instance: models.Model
    ) -> str | None:
        """Return the shard of the rows of a model that an object leads to."""
        if not self.spreads(type(instance)):
            found = _shard_of_referred(model, instance)
            if found is None and model._meta.auto_created:
                # A copy's many-to-many rows are with the copy.
                alias = instance._state.db
                found = alias if alias in shards().aliases else None
            return found
        if isinstance(instance, model) or _have_sets(type(instance), model):
            # A set of it may be asked for, whose rows are with it.
            return self.shard_of(instance) or _shard_of_referred(model, instance)
        # First what it refers to, which may be on another shard than itself.
        return _shard_of_referred(model, instance) or self.shard_of(instance)

    def shard_of(self, instance: models.Model) -> str | None:
        """Return the shard of a sharded object, None where it has no id or anchor.

        Asks no database: what is not in memory is not known.
        """
        id = id_of(instance)
        if id:
            return shard_of(id)
        field: Any = root_of(type(instance))._meta.pk
        anchor = getattr(field, "anchor", None)
        if not isinstance(anchor, str) or field.convention is not None:
            return None
        start = f"{field.collection_name}{settings.SEPARATOR}"
        end = _anchor_in_memory(instance, anchor)
        if end in (None, "") or shards().goes_on(start):
            return None
        return shard_of(f"{start}${end}")

    def place(self, instance: models.Model, using: str) -> str:
        """Return the shard to insert an object on that has its id by now.

        Raises `ShardError` where ``using`` is another one, or a foreign key leaves it.
        """
        id = id_of(instance)
        if id is None:
            return using  # Django refuses it: an update without a key
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
                value = _referred_id(field, instance)
                if value is not None and shard_of(str(value)) != shard:
                    raise ShardError(
                        f"{type(instance)._meta.label} {id!r} belongs to the shard "
                        f"{shard!r}, and {field.name} {value!r} to "
                        f"{shard_of(str(value))!r}: {_advice(id, str(value))}"
                    )
        return shard

    def crosses(self, field: Any) -> bool:
        """Whether a field is a foreign key that may lead to another shard."""
        return (
            isinstance(field, models.ForeignKey)
            and field.db_constraint  # type: ignore[attr-defined]
            and not field.primary_key
            and field.target_field.primary_key
            and self.spreads(field.related_model)
        )


_ADVICE = (
    "a foreign key cannot reach another database. Anchor the one to the other, as in "
    'HiLoField(anchor="order"), or keep its id alone: a ForeignKey with '
    "db_constraint=False, set by its _id."
)


def _advice(id: str, referred: str) -> str:
    from django_hilo.sharding.buckets import bucket_of

    if bucket_of(id) != bucket_of(referred):
        return _ADVICE
    return (
        "the one is anchored to the other already, but a prefix in HILO['SHARDS'] fits "
        "one of them alone. Have prefixes of both there, with the same shards."
    )


def root_of(model: type[models.Model]) -> type[models.Model]:
    """Return the model that the rows of a model belong to, and have their keys from."""
    model = model._meta.concrete_model or model
    owner: Any = model._meta.auto_created  # of a many-to-many table
    relation: Any = model._meta.pk.remote_field  # of a child, or of another's key
    if owner or relation:
        return root_of(owner or relation.model)
    return model


def id_of(instance: models.Model) -> str | None:
    """Return the id of an object, None where it has none in memory yet."""
    # Routers are also asked while __init__() has not set all fields.
    known = vars(instance)
    root = root_of(type(instance))
    return known.get(instance._meta.pk.attname) or known.get(root._meta.pk.attname)


def _referred_id(field: Any, instance: models.Model) -> Any:
    value = vars(instance).get(field.attname)
    if value is None and field.is_cached(instance):
        related = field.get_cached_value(instance)
        value = None if related is None else related.pk  # it got its id since
    return value


def _shard_of_referred(model: type[models.Model], instance: models.Model) -> str | None:
    """Return where the object of a model is that one without a shard refers to."""
    fields: Any = type(instance)._meta.concrete_fields
    values = {
        _referred_id(field, instance)
        for field in fields
        if field.remote_field
        and field.related_model is model
        and field.target_field.primary_key
    }
    found = {shard_of(str(value)) for value in values - {None, ""}}
    return found.pop() if len(found) == 1 else None


def _have_sets(owner: type[models.Model], model: type[models.Model]) -> bool:
    """Whether objects of a model are in sets that belong to those of another."""
    relations: Any = [*model._meta.fields, *model._meta.many_to_many]
    many: Any = owner._meta.many_to_many
    return any(
        each.remote_field and issubclass(owner, each.related_model)
        for each in relations
    ) or any(issubclass(model, each.related_model) for each in many)


def _anchor_in_memory(instance: Any, path: str) -> Any:
    *relations, last = path.split("__")
    for name in relations:
        field = instance._meta.get_field(name)
        instance = field.get_cached_value(instance, default=None)
        if instance is None:
            return None
    field = instance._meta.get_field(last)
    if field.remote_field is None:
        return vars(instance).get(field.attname)
    return _referred_id(field, instance)


def shard_router() -> ShardRouter | None:
    """Return the ShardRouter of the settings, where there are shards."""
    for each in router.routers:
        if isinstance(each, ShardRouter):
            return each if settings.SHARDS else None
    return None
