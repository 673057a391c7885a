"""RavenDB's buckets and shard numbers: pure functions of an id."""

from django_hilo.sharding.buckets import BUCKETS, bucket_of
from django_hilo.sharding.shards import Shards, shard_of

__all__ = ["BUCKETS", "Shards", "bucket_of", "shard_of"]
