from __future__ import annotations

import gc
from threading import get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hilo._allocation import formats
from django_hilo._allocation.formats import Numbers, TextStyle
from django_hilo.counters import Range, Reservation
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, DocumentId, parse


def reserved(low, high, server_prefix="", node_tag="A"):
    return Reservation("orders", node_tag, Range(low, high), server_prefix, "ticket")


@given(
    low=st.integers(1, 12_000) | st.integers(MAX_NUMBER - 5000, MAX_NUMBER - 3000),
    count=st.integers(1, 2500),
    width=st.integers(0, MAX_WIDTH),
    prefix=st.sampled_from(["", "North/"]),
    tag=st.sampled_from(["", "A", "ABCD"]),
    shows=st.booleans(),
)
def test_ids_are_those_that_are_composed_one_by_one(
    low, count, width, prefix, tag, shows
):
    high = low + count - 1
    style = TextStyle("orders", "/", shows, width)
    made = formats.ids(style.of(reserved(low, high, prefix, tag)), low, high)
    shown = tag if shows else ""
    end = f"-{shown}" if shown else ""
    assert made == [
        f"orders/{prefix}{n:0{max(width, 1)}}{end}" for n in range(low, high + 1)
    ]
    assert parse(made[-1])[:4] == DocumentId("orders", prefix, high, shown)[:4]


@pytest.mark.parametrize("style", [TextStyle("orders", "/", True, 0), Numbers()])
@pytest.mark.parametrize("low", [1, 999, 1000, 1001, 123_456, MAX_NUMBER - 10])
def test_what_is_alike_begins_at_the_number(style, low):
    format = style.of(reserved(low, low + 5))
    count = format.alike(low, 6)
    made = list(format.iterator(low, count))
    last = low + count - 1
    assert len(made) == count
    assert made[0] in {low, f"orders/{low}-A"}
    assert made[-1] in {last, f"orders/{last}-A"}


@pytest.mark.parametrize("width", [0, 2, 3, 4, 10])
@pytest.mark.parametrize("low", [1, 1000, 3000, 10_000, 998_000, MAX_NUMBER - 20_000])
def test_whole_thousands_are_alike(low, width):
    low -= low % 1000 if low > 1 else 0
    format = TextStyle("orders", "/", True, width).of(reserved(low, low + 20_000))
    count = format.alike(low, 8_192)
    assert count == (999 if low == 1 else 8_000)
    assert list(format.iterator(low, count)) == [
        f"orders/{n:0{max(width, 1)}}-A" for n in range(low, low + count)
    ]


def test_numbers_are_ints():
    assert formats.ids(Numbers(), 998, 2003) == list(range(998, 2004))


@pytest.mark.parametrize("low", [1, 1000, 5000])
def test_no_step_allocates_what_is_collected(low):
    """Up to Python 3.11 such an allocation may run finalizers, and so other threads."""
    format = TextStyle("orders", "/", True, 0).of(reserved(low, low + 10_000))
    ids = iter(format.iterator(low, format.alike(low, 8_192)))
    # Of this thread: others, of pytest-xdist for one, may allocate meanwhile.
    ran: list[None] = []
    here = get_ident()
    gc.callbacks.append(lambda *args: ran.append(None) if get_ident() == here else None)
    threshold = gc.get_threshold()
    # So that Python has none in store, which would not count as allocated.
    pairs = [(number, number) for number in range(10_000)]
    try:
        gc.set_threshold(1)
        before = len(ran)
        for _ in ids:
            pass
        after = len(ran)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.pop()
    assert len(pairs) == 10_000
    assert after == before
