"""Ids that an iterator in C hands out: given once, taken back, ended by forks."""

import ctypes
import gc
import os
import random
import sys
import threading
from collections import deque
from threading import get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hilo._allocation import block as blocks
from django_hilo._allocation import pool
from django_hilo._allocation.block import MAX_SIZE, Numbers, TextStyle, block_of
from django_hilo._allocation.cache import CachedRange, take_from
from django_hilo._allocation.pool import Counter, CounterKey, Refill
from django_hilo._allocation.target import resolve
from django_hilo.counters import Range, Reservation
from django_hilo.generator import (
    iter_ids,
    next_id,
    next_ids,
    next_number,
    return_ranges,
)
from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, DocumentId, parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.threads import in_threads

STYLE = TextStyle("orders", "/", True, 0)


def reserved(low: int, high: int, prefix: str = "", tag: str = "A") -> Reservation:
    return Reservation("orders", tag, Range(low, high), prefix, "ticket")


@pytest.fixture
def counter() -> Counter:
    counter = Counter(CounterKey(None, "orders", "A"))
    assert counter.add([CachedRange(reserved(1, 5000))], 5000, 1)[0].low == 1
    return counter


@pytest.fixture(params=["page", "process id"])
def page(request, monkeypatch):
    """Blocks as they are here, and as on a system that wipes no pages."""
    page = blocks._page()
    assert (page is not None) == (sys.platform == "linux")
    wiped = page if request.param == "page" else None
    monkeypatch.setattr(blocks, "_ones", wiped)


@pytest.fixture(params=["with a GIL", "without"])
def gil(request, monkeypatch):
    monkeypatch.setattr(blocks, "_has_gil", request.param == "with a GIL")


class TestIds:
    @given(
        low=st.integers(1, 12_000) | st.integers(MAX_NUMBER - 5000, MAX_NUMBER - 3000),
        count=st.integers(1, 2500),
        width=st.integers(0, MAX_WIDTH),
        prefix=st.sampled_from(["", "North/"]),
        tag=st.sampled_from(["", "A", "ABCD"]),
        shows=st.booleans(),
    )
    def test_their_parts(self, low, count, width, prefix, tag, shows):
        high = low + count - 1
        style = TextStyle("orders", "/", shows, width)
        reservation = reserved(low, high, prefix, tag)
        made, n = style.ids(reservation, low, high), low
        while n <= high:
            ids, length = style.block(reservation, n, high - n + 1)
            assert list(ids) == made[n - low : n - low + length]
            n += length
        shown = tag if shows else ""
        assert len(made) == count
        assert [parse(made[0])[:4], parse(made[-1])[:4]] == [
            DocumentId("orders", prefix, number, shown)[:4] for number in (low, high)
        ]
        digits = made[0].removeprefix(f"orders/{prefix}").partition("-")[0]
        assert digits == str(low).zfill(width)

    def test_numbers_are_ints(self):
        numbers = Numbers().ids(reserved(1, 5000), 998, 1003)
        assert list(numbers) == list(range(998, 1004))

    @pytest.mark.parametrize("low", [1, 1000])
    @pytest.mark.parametrize("style", [STYLE, Numbers()])
    def test_no_step_allocates_what_is_collected(self, style, low):
        """Up to Python 3.11 such an allocation may run finalizers of others' code."""
        ids = block_of(style.block(reserved(1, 20_000), low, MAX_SIZE)[0])
        # Of this thread: others, of pytest-xdist for one, may allocate meanwhile.
        ran: list[None] = []
        here = get_ident()
        gc.callbacks.append(
            lambda *_: ran.append(None) if get_ident() == here else None
        )
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


class TestCounters:
    def test_blocks_grow_and_end_with_their_thousand(self, counter):
        sizes, ids = [], None
        while ids := counter.cut(STYLE, ids):
            sizes.append(len(list(ids)))
        assert sizes[:8] == [4, 5, 10, 20, 40, 80, 160, 320]
        assert sizes[8:] == [359, 999, 1, 1000, 1000, 1000, 1]

    def test_the_block_of_others_is_used(self, counter):
        assert counter.cut(STYLE, None) is counter.cut(STYLE, None)

    def test_another_style_goes_on_after_it(self, counter):
        first = counter.cut(STYLE, None)
        assert next(first) == "orders/2-A"
        assert next(counter.cut(Numbers(), None)) == 3
        assert list(first) == []

    def test_numbers_come_back_in_their_order(self, counter):
        ids = counter.cut(STYLE, None)
        assert [next(ids), next(ids)] == ["orders/2-A", "orders/3-A"]
        assert [(each.low, each.high) for each in counter.take(3)] == [(4, 6)]
        assert next(counter.cut(STYLE, None)) == "orders/7-A"

    def test_what_a_caller_calls_spent_goes_on_in_order(self, counter):
        ids = counter.cut(STYLE, None)
        assert next(ids) == "orders/2-A"
        again = counter.cut(STYLE, ids)
        assert list(ids) == []
        assert next(again) == "orders/3-A"

    def test_a_spent_block_at_the_end_of_a_range(self, counter):
        assert counter.take(4998)[0].high == 4999
        ids = counter.cut(STYLE, None)
        assert list(ids) == ["orders/5000-A"]
        assert counter.cut(STYLE, ids) is None
        assert counter.take(1) is None
        counter.add([CachedRange(reserved(7001, 7100))], 100, 1)
        assert next(counter.cut(STYLE, None)) == "orders/7002-A"

    def test_a_block_where_it_is_long_due(self, counter):
        """Another thread reserves already, so that nothing is fetched ahead."""
        counter.take(4999)
        counter.begin_refill(Refill())
        counter.add([CachedRange(reserved(5001, 5100))], 100, 90, 0.5)
        assert counter.is_due
        assert not counter.begin_ahead(Refill())
        ids = counter.cut(STYLE, None)
        assert [parse(id).number for id in ids] == list(range(5091, 5101))
        assert counter.cut(STYLE, ids) is None

    @pytest.mark.parametrize("is_returned", [True, False])
    def test_what_is_given_up_is_given_no_more(self, counter, is_returned):
        ids = counter.cut(STYLE, None)
        next(ids)
        held = counter.shrink(counter.newest) if is_returned else counter.drop([10])
        assert held is None or held.next == 3
        assert list(ids) == []
        assert counter.cut(STYLE, None) is None
        assert counter.take(1) is None

    @pytest.mark.parametrize("asked", [0, 10, 49, 50, 51, 60, 98])
    def test_each_is_given_once_while_the_next_range_is_on_its_way(self, asked):
        counter = Counter(CounterKey(None, "orders", "A"))
        counter.add([CachedRange(reserved(1, 100))], 100, 1, 0.5)
        assert counter.begin_refill(Refill()) is None  # another thread's, of many
        given = [1]
        if asked:
            (taken,) = counter.take(asked)
            given += range(taken.low, taken.high + 1)
        ids = None
        while (ids := counter.cut(Numbers(), ids)) is not None:
            assert len(given) <= 200
            given += ids
        assert given == list(range(1, 101))

    @pytest.mark.parametrize(
        ("share", "due_at"), [(0.01, 1), (0.5, 50), (0.75, 75), (0.999, 100)]
    )
    def test_the_next_range_is_due_no_sooner_than_asked_for(self, share, due_at):
        counter = Counter(CounterKey(None, "orders", "A"))
        counter.add([CachedRange(reserved(1, 100))], 100, 1, share)
        ids, given = None, 1
        while not counter.is_due:
            ids = counter.cut(Numbers(), ids)
            given += 1 if counter.is_due else len(list(ids))
        assert given == due_at

    @pytest.mark.parametrize("way", ["numbers", "ids"])
    def test_an_interrupt_at_the_end_of_a_range(self, counter, way, monkeypatch):
        """The numbers after the range are not ours."""
        assert counter.take(4998)[0].high == 4999
        left = CachedRange.left

        def interrupt(cached):
            found = left.fget(cached)
            if found == 0:
                raise KeyboardInterrupt
            return found

        ids = counter.cut(STYLE, None)
        assert list(ids) == ["orders/5000-A"]
        with monkeypatch.context() as patch:
            patch.setattr(CachedRange, "left", property(interrupt))
            with pytest.raises(KeyboardInterrupt):
                counter.take(1)
        ours = reserved(7001, 7100)
        if way == "numbers":
            assert counter.add([CachedRange(ours)], 100, 1)[0].low == 7001
        else:
            counter.add([CachedRange(ours)], 100, 0)
            assert next(counter.cut(STYLE, ids)) == "orders/7001-A"

    def test_an_interrupt_while_numbers_are_taken_back(self, counter, monkeypatch):
        """An explicit number in the block of others must still end it."""
        ids = counter.cut(STYLE, None)

        def interrupted(ids):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("django_hilo._allocation.pool.end_block", interrupted)
            with pytest.raises(KeyboardInterrupt):
                counter.take(1)
        counter.drop([10])
        assert list(ids) == []
        assert counter.take(1) is None


class TestThreads:
    def test_each_number_is_given_once(self, counter, page, gil):
        """Some take blocks, some numbers, one takes all back again and again."""
        given: list[list[int]] = []
        barrier = threading.Barrier(8)

        def take(seed: int) -> None:
            numbers, dice, ids = [], random.Random(seed), None
            barrier.wait(60)
            while True:
                if dice.random() < 0.002:
                    counter.recall()
                if dice.random() < 0.02:
                    numbers += [taken.low for taken in counter.take(1) or ()]
                else:
                    ids = counter.cut(STYLE, ids)
                    if ids is None:
                        break
                    for id in ids:
                        numbers.append(parse(id).number)
                        if dice.random() < 0.05:
                            break
            given.append(numbers)

        counter.add([CachedRange(reserved(5001, 60_000))], 55_000, 1)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            in_threads(8, take)
        finally:
            sys.setswitchinterval(before)
        # 1 and 2 were taken first.
        assert sorted(n for numbers in given for n in numbers) == list(range(3, 60_001))
        assert sum(map(bool, given)) > 1, "no two threads met"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.usefixtures("gil")
class TestForks:
    @pytest.mark.usefixtures("page")
    def test_a_block_ends_in_a_child_without_hooks(self, counter):
        ids = counter.cut(STYLE, None)
        next(ids)
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            os._exit(len(list(ids)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(ids) == "orders/3-A"

    def test_a_new_process_makes_blocks_of_its_own(self, counter, new_process):
        ids = counter.cut(STYLE, None)
        new_process()
        assert list(ids) == []
        own = Counter(counter.key)
        own.add([CachedRange(reserved(1, 100))], 100, 1)
        assert next(own.cut(STYLE, None)) == "orders/2-A"


@pytest.mark.django_db(transaction=True)
def test_what_threads_leave_goes_back_without_a_gap(settings):
    """All ways to ask, by threads that compete: each number is given, or goes back."""
    settings.HILO = {**settings.HILO, "CAPACITY": 200, "MAX_CAPACITY": 3000}
    ids = iter_ids(Order)

    def take(seed: int) -> list[str]:
        dice, mine = random.Random(seed), []
        for _ in range(400):
            mine += dice.choice(
                [
                    lambda: [next(ids)],
                    lambda: [next_id(Order)],
                    lambda: [Order.objects.next_id()],
                    lambda: [next_id("orders")],
                    lambda: next_ids(Order, 3),
                    lambda: [f"orders/{next_number(Order)}-A"],
                ]
            )()
        return mine

    given = [*in_threads(8, take)]
    given.append([next_id(Order)])  # they may have ended with the last of a range
    counter = pool.current().counter(resolve(Order).key)
    numbers = sorted(parse(id).number for mine in given for id in mine)
    assert len(numbers) == len(set(numbers))
    newest = counter._ranges[-1].reservation.range
    assert return_ranges() == 1
    # A thread that waited may have found its numbers elsewhere: SQLite's writers queue.
    left = HiLoDocument.objects.get().max
    assert left >= numbers[-1]
    assert set(range(newest.low, left + 1)) <= set(numbers)


def test_taking_looks_no_further_than_it_needs():
    looked_at = []

    class Watched(CachedRange):
        @property
        def left(self) -> int:
            looked_at.append(self)
            return super().left

    ranges = deque(
        Watched(Reservation("c", "", Range(n, n), "", "")) for n in range(1, 1001)
    )
    assert [taken.low for taken in take_from(ranges, 2)] == [1, 2]
    assert len(set(map(id, looked_at))) <= 3
