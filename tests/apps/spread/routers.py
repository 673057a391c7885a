from __future__ import annotations

from typing import Any

from django_hilo.sharding import ShardRouter


class ShopRouter(ShardRouter):
    """Each shard has a copy of the labels."""

    def is_sharded(self, model: Any) -> bool:
        return model._meta.label != "spread.Label" and super().is_sharded(model)
