"""Which of RavenDB's shards has which ids."""

import pytest

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.sharding import BUCKETS, Shards, shard_of, shards
from tests.sharding.test_buckets import VECTORS


@pytest.mark.parametrize("id", VECTORS)
def test_vectors(id):
    assert shard_of(id, 3) == VECTORS[id] // 349_525


@pytest.mark.parametrize(
    ("bucket", "number"),
    [(0, 0), (349_524, 0), (349_525, 1), (699_049, 1), (699_050, 2), (BUCKETS - 1, 2)],
)
def test_the_last_takes_the_rest(monkeypatch, bucket, number):
    monkeypatch.setattr(shards, "bucket_of", lambda id: bucket)
    assert shard_of("orders/1-A", 3) == number
    assert shard_of("orders/1-A", 1) == 0


class TestPrefixes:
    def test_vectors(self):
        """Asserted by a test of RavenDB's own."""
        given = Shards(3, {"eu/": [0], "asia/": [1, 2]})
        assert [shard_of(id, given) for id in ("eu/0", "asia/1", "asia/2")] == [0, 1, 2]
        assert shard_of("orders/2-A", given) == 2

    def test_the_longest_counts(self):
        given = Shards(3, {"eu/": [0], "eu/de/": [1], "eu-": [2]})
        ids = ("eu/1", "eu/de/1", "EU/DE/1", "eu-1", "eu/d/1")
        assert [shard_of(id, given) for id in ids] == [0, 1, 1, 2, 0]

    def test_case_does_not_count(self):
        given = Shards(3, {"EU/": [1]})
        assert shard_of("eu/0", given) == shard_of("Eu/7", given) == 1

    def test_they_are_looked_for_in_the_whole_id(self):
        given = Shards(3, {"eu/": [1]})
        assert shard_of("eu/7$orders/1-A", given) == shard_of("eu/0", given) == 1
        assert shard_of("orders/1-A$eu/0", given) == 2

    def test_shards_share_them_in_ascending_order(self):
        given = Shards(3, {"a/": [2, 0]})
        ids = [f"a/{number}" for number in range(20)]
        halves = [(0, 2)[shard_of(id, 2)] for id in ids]
        assert [shard_of(id, given) for id in ids] == halves
        assert set(halves) == {0, 2}


@pytest.mark.parametrize(
    ("count", "prefixes", "message"),
    [
        (0, {}, "shards must be .* not 0"),
        (BUCKETS + 1, {}, "shards must be .* not 1048577"),
        (3, {"eu": [0]}, "'eu' must end in"),
        (3, {"/": [0]}, "'/' must end in"),
        (3, {"eu/": []}, r"'eu/' must be .* 0 to 2, not \[\]"),
        (3, {"eu/": [3]}, r"'eu/' must be .* 0 to 2, not \[3\]"),
        (3, {"eu/": [0], "EU/": [1]}, "twice"),
    ],
)
def test_what_ravendb_refuses(count, prefixes, message):
    with pytest.raises(ValueError, match=message):
        Shards(count, prefixes)


@pytest.mark.parametrize("id", [None, 7])
def test_what_is_no_text_has_no_shard(id):
    with pytest.raises(InvalidDocumentId):
        shard_of(id, 3)
