import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hilo._allocation.capacity import AdaptiveCapacity, next_capacity


@pytest.mark.parametrize(
    ("last_size", "seconds", "expected"),
    [
        (32, 0.0, 64),
        (32, 29.999, 64),
        (32, -5.0, 64),  # the clock went back
        (32, 30.0, 32),
        (512, 60.0, 512),
        (512, 60.001, 256),
        (33, 61.0, 32),
        (524_288, 1.0, 1_048_576),
        (1_048_576, 1.0, 1_048_576),
    ],
)
def test_capacity_by_ravendbs_rule(last_size, seconds, expected):
    assert next_capacity(last_size, seconds, 32, 1_048_576) == expected


@given(
    st.integers(0, 10**7),
    st.floats(-100, 10**6),
    st.integers(1, 1000),
    st.integers(0, 10**6),
)
def test_capacity_stays_in_its_bounds(last_size, seconds, least, more):
    size = next_capacity(last_size, seconds, least, least + more)
    assert least <= size <= least + more


def test_a_million_numbers_cost_at_most_26_reservations():
    capacity, left, reservations = AdaptiveCapacity(), 1_000_000, 0
    while left > 0:
        size = capacity.next(32, 1_048_576)
        capacity.note(size)
        left, reservations = left - size, reservations + 1
    assert reservations <= 26
