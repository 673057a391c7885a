import sys
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.sharding import BUCKETS, bucket_of

# Of RavenDB: those of orders/1-A, orders/2-A and orders/4-A are asserted by its
# own tests, the others follow from the rule.
VECTORS = {
    "users/1": 1005385,
    "USERS/1": 1005385,
    "users/1-A": 977134,
    "orders/1-A": 151326,
    "orders/2-A": 831716,
    "orders/4-A": 393169,
    "orders/33-A": 522125,
    "invoices/7-A$orders/33-A": 522125,
    "Users/4": 690258,
    "Users/70$Users/4": 690258,
    "Users/71$users/4": 690258,
    "foo": 309823,
    "Users/1$foo": 309823,
    "Users/2$foo": 309823,
    "x$$foo": 309823,
    "$foo": 706099,
    "a$b$c": 415725,
    "c": 415725,
    "$": 1029530,
    "abc$": 584089,
    "users/1$": 584089,
    "Raven/Hilo/users": 706057,
    "Raven/Hilo/orders": 638964,
    "Ü/1": 630554,
    "ü/1": 630554,
    "ΟΔΟΣ/1": 785364,
    "suffix0": 612,
    "suffix1": 686910,
    "suffix2": 379285,
    "eu/0": 857695,
    "asia/1": 331878,
    "asia/2": 733934,
}


@pytest.mark.parametrize("id", VECTORS)
def test_vectors(id):
    assert bucket_of(id) == VECTORS[id]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text("abc/1"))
def test_an_anchor_decides_alone(start, anchor):
    assert bucket_of(f"{start}${anchor}") == bucket_of(f"x${anchor}")
    if anchor:
        assert bucket_of(f"{start}${anchor}") == bucket_of(anchor.upper())


def test_a_million_random_ids_are_spread_evenly():
    random = Random(2026)
    groups = 1024
    counts = [0] * groups
    million = 1_000_000
    for _ in range(million):
        counts[bucket_of(f"orders/{random.getrandbits(60)}-A") % groups] += 1
    expected = million / groups
    chi_square = sum((count - expected) ** 2 / expected for count in counts)
    # With 1,023 degrees of freedom it is all but normal (Wilson and Hilferty).
    freedom = groups - 1
    spread = 2 / (9 * freedom)
    deviation = ((chi_square / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5
    assert 0.0001 < NormalDist().cdf(deviation) < 0.9999


def test_ids_in_a_row_are_spread_over_ranges_evenly():
    counts = [0] * 16
    for number in range(1, 100_001):
        counts[bucket_of(f"orders/{number}-A") * 16 // BUCKETS] += 1
    chi_square = sum((count - 6250) ** 2 / 6250 for count in counts)
    assert chi_square < 44.3  # 15 degrees of freedom, 1 in 10,000


@pytest.mark.parametrize("value", [None, 7, b"orders/1"])
def test_what_is_no_text_has_no_bucket(value):
    with pytest.raises(InvalidDocumentId, match="expected a str"):
        bucket_of(value)


def test_half_a_character_has_no_bucket():
    with pytest.raises(InvalidDocumentId, match="surrogate pair"):
        bucket_of("orders/\ud800")


def test_without_xxhash_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(ImportError, match=r"django-hilo\[sharding\]"):
        bucket_of("orders/1-A")
