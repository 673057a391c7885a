"""Ids that an iterator in C hands out: given once, taken back, ended by forks."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections import deque
from concurrent.futures import Future

import pytest
from django.db import connections

from django_hilo._allocation import block as blocks
from django_hilo._allocation import pool
from django_hilo._allocation.cache import Held, take_from
from django_hilo._allocation.capacity import Ahead
from django_hilo._allocation.formats import Numbers, TextStyle
from django_hilo._allocation.pool import Counter, CounterKey
from django_hilo._allocation.target import resolve
from django_hilo.counters import Range, Reservation
from django_hilo.generator import (
    iter_ids,
    next_id,
    next_ids,
    next_number,
    return_ranges,
)
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order

STYLE = TextStyle("orders", "/", True, 0)
LOCKS = [False, True]


def reserved(low: int, high: int) -> Reservation:
    return Reservation("orders", "A", Range(low, high), "", "ticket")


@pytest.fixture
def counter(monkeypatch) -> Counter:
    counter = Counter(CounterKey(None, "orders", "A"))
    assert counter.add([reserved(1, 5000)], 5000, 1)[0].low == 1
    return counter


@pytest.fixture(params=["page", "process id"])
def page(request, monkeypatch):
    """Blocks as they are here, and as on a system that wipes no pages."""
    page = blocks._Page()
    assert page._is_wiped == (sys.platform == "linux")
    if request.param == "process id":
        monkeypatch.setattr(page, "_is_wiped", False)
    monkeypatch.setattr(blocks, "_page", page)


@pytest.fixture(params=["with a GIL", "without"])
def gil(request, monkeypatch):
    monkeypatch.setattr(blocks, "_has_gil", request.param == "with a GIL")


class TestCounters:
    def test_a_block_grows_while_nobody_else_asks(self, counter):
        sizes, block = [], None
        for _ in range(9):
            block = counter.cut(STYLE, block)
            sizes.append(len(list(block.ids)))
        assert sizes == [16, 32, 64, 128, 256, 502, 1000, 2000, 1000]

    def test_the_block_of_others_is_used(self, counter):
        assert counter.cut(STYLE) is counter.cut(STYLE)

    def test_another_style_goes_on_after_it(self, counter):
        first = counter.cut(STYLE)
        assert next(first.ids) == "orders/2-A"
        assert next(counter.cut(Numbers()).ids) == 3
        assert list(first.ids) == []

    def test_numbers_come_back_in_their_order(self, counter):
        block = counter.cut(STYLE)
        assert [next(block.ids), next(block.ids)] == ["orders/2-A", "orders/3-A"]
        assert [(each.low, each.high) for each in counter.take(3)] == [(4, 6)]
        assert next(counter.cut(STYLE).ids) == "orders/7-A"

    def test_a_spent_block_at_the_end_of_a_range(self, counter):
        assert counter.take(4998)[0].high == 4999
        block = counter.cut(STYLE)
        assert list(block.ids) == ["orders/5000-A"]
        assert counter.cut(STYLE, block) is None
        assert counter.take(1) is None
        counter.add([reserved(7001, 7100)], 100, 1)
        assert next(counter.cut(STYLE).ids) == "orders/7002-A"

    def test_a_block_where_it_is_long_due(self, counter):
        """Another thread reserves already, so that nothing is fetched ahead."""
        counter.take(4999)
        counter.begin_refill(Future())
        counter.add([reserved(5001, 5100)], 100, 90, Ahead(0.5, 0.01))
        assert counter.is_due
        assert not counter.begin_ahead(Future())
        block = counter.cut(STYLE)
        assert [parse(id).number for id in block.ids] == list(range(5091, 5101))
        assert counter.cut(STYLE, block) is None

    def test_what_is_drained_is_given_no_more(self, counter):
        block = counter.cut(STYLE)
        next(block.ids)
        assert counter.drain().next == 3
        assert list(block.ids) == []
        assert counter.cut(STYLE) is None

    def test_an_explicit_number_in_a_block_drops_its_range(self, counter):
        block = counter.cut(STYLE)
        counter.drop([10])
        assert list(block.ids) == []
        assert counter.take(1) is None

    def test_what_is_forgotten_is_given_no_more(self, counter):
        block = counter.cut(STYLE)
        counter.forget()
        assert list(block.ids) == []
        assert counter.take(1) is None

    @pytest.mark.parametrize("asked", [0, 10, 49, 50, 51, 60, 98])
    def test_each_is_given_once_while_the_next_range_is_on_its_way(self, asked):
        counter = Counter(CounterKey(None, "orders", "A"))
        counter.add([reserved(1, 100)], 100, 1, Ahead(0.5, 0.01))
        assert counter.begin_refill(Future()) is None  # another thread's, of many
        given = [1]
        if asked:
            (share,) = counter.take(asked)
            given += range(share.low, share.high + 1)
        block = None
        while (block := counter.cut(Numbers(), block)) is not None:
            assert len(given) <= 200
            given += block.ids
        assert given == list(range(1, 101))

    @pytest.mark.parametrize(
        ("share", "due_at"), [(0.01, 1), (0.5, 50), (0.75, 75), (0.999, 100)]
    )
    def test_the_next_range_is_due_no_sooner_than_asked_for(self, share, due_at):
        counter = Counter(CounterKey(None, "orders", "A"))
        counter.add([reserved(1, 100)], 100, 1, Ahead(share, 0.01))
        block, given = None, 1
        while not counter.is_due:
            block = counter.cut(Numbers(), block)
            given += 1 if counter.is_due else len(list(block.ids))
        assert given == due_at

    @pytest.mark.parametrize("way", ["numbers", "ids"])
    def test_an_interrupt_at_the_end_of_a_range(self, counter, way, monkeypatch):
        """What comes after the range is not ours."""
        assert counter.take(4998)[0].high == 4999
        left = Held.left

        def interrupt(held):
            found = left.fget(held)
            if found == 0:
                raise KeyboardInterrupt
            return found

        block = counter.cut(STYLE)
        assert list(block.ids) == ["orders/5000-A"]
        with monkeypatch.context() as patch:
            patch.setattr(Held, "left", property(interrupt))
            with pytest.raises(KeyboardInterrupt):
                counter.take(1)
        ours = reserved(7001, 7100)
        if way == "numbers":
            assert counter.add([ours], 100, 1)[0].low == 7001
        else:
            counter.add([ours], 100, 0)
            ids, block = [], None
            while not ids:
                block = counter.cut(STYLE, block)
                ids = list(block.ids)
            assert ids[0] == "orders/7001-A"


class TestBlocksAhead:
    """Made by a thread that has the time, and given as if they had been cut then."""

    def given(self, counter: Counter, block: blocks.Block | None) -> list[int]:
        numbers = []
        while block is not None:
            numbers += [parse(id).number for id in block.ids]
            block = counter.cut(STYLE, block)
        return numbers

    def test_they_follow_each_other(self, counter, monkeypatch):
        block = counter.cut(STYLE)
        counter.cut_ahead()
        monkeypatch.setattr(counter._stock, "cut", None)
        numbers = []
        for _ in range(3):
            numbers += [parse(id).number for id in block.ids]
            last, block = block, counter._stock.following(STYLE, block)
        assert numbers == list(range(2, 2 + 16 + 32 + 64))
        assert block is None
        monkeypatch.undo()
        block = counter.cut(STYLE, last)
        assert self.given(counter, block) == list(range(114, 5001))

    def test_over_the_end_of_a_range(self, counter):
        assert counter.take(4989)[0].high == 4990
        block = counter.cut(STYLE)
        counter.add([reserved(7001, 7020)], 20, 0)
        counter.cut_ahead()
        assert self.given(counter, block) == [*range(4991, 5001), *range(7001, 7021)]

    def test_another_thread_goes_on_with_what_is_called_spent(self, counter):
        block = counter.cut(STYLE)
        assert next(block.ids) == "orders/2-A"
        counter.cut_ahead()
        again = counter.cut(STYLE, block)
        assert list(block.ids) == []
        assert self.given(counter, again) == list(range(3, 5001))

    def test_numbers_that_are_asked_for_come_first(self, counter):
        block = counter.cut(STYLE)
        next(block.ids)
        counter.cut_ahead()
        numbers = [share.low for share in counter.take(1)]
        numbers += self.given(counter, counter.cut(STYLE))
        assert numbers == list(range(3, 5001))

    def test_a_number_is_dropped_after_a_signal(self, counter, monkeypatch):
        """Its handler raised while numbers were taken back, which callers have."""
        block = counter.cut(STYLE)
        next(block.ids)
        counter.cut_ahead()
        self.break_off(counter, monkeypatch)
        counter.drop([10])
        assert list(block.ids) == []
        assert counter.take(1) is None

    def break_off(self, counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
        first = counter._stock._cuts[0].block
        end = blocks.Block.end

        def interrupted(block):
            if block is first:
                raise KeyboardInterrupt
            return end(block)

        with monkeypatch.context() as patch:
            patch.setattr(blocks.Block, "end", interrupted)
            with pytest.raises(KeyboardInterrupt):
                counter.take(1)

    def test_ids_of_another_style(self, counter):
        block = counter.cut(STYLE)
        list(block.ids)
        counter.cut_ahead()
        assert next(counter.cut(Numbers(), block).ids) == 18

    def test_an_explicit_number_in_one_drops_its_range(self, counter):
        counter.cut(STYLE)
        counter.cut_ahead()
        counter.drop([40])
        assert counter.take(1) is None

    def test_none_where_nobody_asks_for_ids(self, counter):
        counter.cut_ahead()
        assert counter._stock.style is None
        assert counter.take(1)[0].low == 2

    @pytest.mark.parametrize("ahead", [False, True])
    def test_the_next_range_is_due_as_without(self, ahead):
        counter = Counter(CounterKey(None, "orders", "A"))
        counter.add([reserved(1, 100)], 100, 90)
        block = counter.cut(Numbers())
        counter.add([reserved(101, 200)], 100, 0, Ahead(0.5, 0.01))
        if ahead:
            counter.cut_ahead()
        given = 90
        while not counter.is_due:
            given += len(list(block.ids))
            block = counter.cut(Numbers(), block)
            assert block is not None
        assert given + 1 == 150


class TestThreads:
    def test_each_number_is_given_once(self, counter, page, gil):
        """Some take blocks, some numbers, one takes all back again and again."""
        given: list[list[int]] = []
        barrier = threading.Barrier(8)

        def take(seed: int) -> None:
            numbers, dice, block = [], random.Random(seed), None
            barrier.wait(60)
            while True:
                if dice.random() < 0.002:
                    counter.recall()
                if dice.random() < 0.02:
                    counter.cut_ahead()
                if dice.random() < 0.02:
                    shares = counter.take(1)
                    numbers += [share.low for share in shares or ()]
                else:
                    block = counter.cut(STYLE, block)
                    if block is None:
                        break
                    for id in block.ids:
                        numbers.append(parse(id).number)
                        if dice.random() < 0.05:
                            break
            given.append(numbers)

        counter.add([reserved(5001, 60_000)], 55_000, 1)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=take, args=[n]) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(before)
        # 1 and 2 were taken first.
        assert sorted(n for numbers in given for n in numbers) == list(range(3, 60_001))
        assert sum(map(bool, given)) > 1, "no two threads met"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.usefixtures("page", "gil")
class TestForks:
    def test_a_block_ends_in_a_child_without_hooks(self, counter):
        import ctypes

        block = counter.cut(STYLE)
        next(block.ids)
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            os._exit(len(list(block.ids)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(block.ids) == "orders/3-A"

    def test_a_new_process_makes_blocks_of_its_own(self, counter, new_process):
        block = counter.cut(STYLE)
        new_process()
        assert list(block.ids) == []
        own = Counter(counter.key)
        own.add([reserved(1, 100)], 100, 1)
        assert next(own.cut(STYLE).ids) == "orders/2-A"


@pytest.mark.django_db(transaction=True)
def test_what_threads_leave_goes_back_without_a_gap(settings):
    """All ways to ask, by threads that compete: each number is given, or goes back."""
    settings.HILO = {**settings.HILO, "CAPACITY": 200, "MAX_CAPACITY": 3000}
    ids, given = iter_ids(Order), []

    def take(seed: int) -> None:
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
        given.append(mine)
        connections.close_all()

    threads = [threading.Thread(target=take, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given.append([next_id(Order)])  # they may have ended with the last of a range
    stock = pool.current().counter(resolve(Order).key)._stock
    numbers = sorted(parse(id).number for mine in given for id in mine)
    assert len(numbers) == len(set(numbers))
    newest = stock._ranges[-1].reservation.range
    assert return_ranges() == 1
    # A thread that waited may have found its numbers elsewhere: SQLite's writers queue.
    left = HiLoDocument.objects.get().max
    assert left >= numbers[-1]
    assert set(range(newest.low, left + 1)) <= set(numbers)


@pytest.mark.django_db(transaction=True)
def test_taking_looks_no_further_than_it_needs():
    looked_at = []

    class Watched(Held):
        @property
        def left(self) -> int:
            looked_at.append(self)
            return super().left

    ranges = deque(
        Watched(Reservation("c", "", Range(n, n), "", "")) for n in range(1, 1001)
    )
    assert [share.low for share in take_from(ranges, 2)] == [1, 2]
    assert len(set(map(id, looked_at))) <= 3
