from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, models

from django_hilo.exceptions import ShardError
from django_hilo.sharding import ShardRouter
from example_project.shop.shards import shards

# Labels, as migrations have models of their own.
COPIED = ("shop.Customer", "shop.Product")


class ShopRouter(ShardRouter):
    """Keeps the shop on the shards, and all else in the default database.

    Customers and products are read on the shard of what refers to them, or else on the
    first one. Who changes one names each shard in turn.
    """

    def is_sharded(self, model: type[models.Model]) -> bool:
        return super().is_sharded(model) and model._meta.label not in COPIED

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str | None:
        if model._meta.label not in COPIED:
            return super().db_for_read(model, **hints)
        instance = hints.get("instance")
        alias = instance._state.db if instance is not None else None
        return alias if alias in shards() else shards()[0]

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str | None:
        if model._meta.label not in COPIED:
            return super().db_for_write(model, **hints)
        if isinstance(hints.get("instance"), model):
            raise ShardError(
                f"Each shard has a copy of this {model._meta.verbose_name}: name them "
                f"in turn, save(using=alias), delete(using=alias)."
            )
        return None

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool:
        return db in shards() if app_label == "shop" else db == DEFAULT_DB_ALIAS
