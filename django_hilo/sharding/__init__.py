"""Buckets and shards: which place, and which database, an id belongs to."""

from typing import TYPE_CHECKING, Any

from django_hilo.sharding.router import ShardRouter
from django_hilo.sharding.shards import shard_of

if TYPE_CHECKING:
    from django_hilo.sharding.buckets import bucket_of

__all__ = ["ShardRouter", "bucket_of", "shard_of"]


def __getattr__(name: str) -> Any:
    if name == "bucket_of":
        # Only it needs xxhash, and the fields import this package.
        from django_hilo.sharding.buckets import bucket_of

        return bucket_of
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
