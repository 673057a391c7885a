"""Buckets and shards: which place, and which database, an id belongs to."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_hilo.sharding.buckets import bucket_of
    from django_hilo.sharding.router import ShardRouter
    from django_hilo.sharding.shards import shard_of

__all__ = ["ShardRouter", "bucket_of", "shard_of"]

# Imported when asked for: buckets need xxhash and no Django, routers the reverse.
_MODULES = {"ShardRouter": "router", "bucket_of": "buckets", "shard_of": "shards"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
