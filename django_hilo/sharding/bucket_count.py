"""How many buckets there are, for what must not need xxhash, as `buckets` does."""

BUCKETS = 1024 * 1024
