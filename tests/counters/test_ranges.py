import re
import sys
from itertools import chain

import pytest

from django_hilo.counters.ranges import HiLoKeyGenerator, Range
from django_hilo.exceptions import NestedReservation
from django_hilo.fields._collection_names import default_collection
from tests.support.commands import output_of
from tests.support.patience import PATIENCE
from tests.support.threads import in_threads


def test_a_range_includes_both_ends():
    numbers = Range(33, 64)
    assert numbers.size == 32
    assert 33 in numbers and 64 in numbers
    assert 32 not in numbers and 65 not in numbers
    assert Range(33, 64) == numbers


class TestHiLoKeyGenerator:
    def test_the_next_hi_is_asked_for_when_the_low_part_is_used_up(self):
        his = iter([2, 5, 6])
        generator = HiLoKeyGenerator(lambda: next(his), max_lo=3)
        keys = [generator.generate_key() for _ in range(7)]
        assert keys == [6, 7, 8, 15, 16, 17, 18]

    @pytest.mark.parametrize("max_lo", [0, -1])
    def test_max_lo_must_be_positive(self, max_lo):
        with pytest.raises(
            ValueError, match=f"max_lo must be greater than zero, not {max_lo}"
        ):
            HiLoKeyGenerator(lambda: 1, max_lo=max_lo)

    @pytest.mark.parametrize("max_lo", ["9", 9.0, None])
    def test_max_lo_must_be_an_integer(self, max_lo):
        refusal = re.escape(f"max_lo must be an integer, not {max_lo!r}")
        with pytest.raises(ValueError, match=refusal):
            HiLoKeyGenerator(lambda: 1, max_lo)

    def test_an_error_loses_nothing(self):
        answers = iter([ConnectionError(), 1])

        def get_next_hi():
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        generator = HiLoKeyGenerator(get_next_hi, max_lo=10)
        with pytest.raises(ConnectionError):
            generator.generate_key()
        assert generator.generate_key() == 10

    def test_threads_share_it(self):
        his = iter(range(10_000))
        generator = HiLoKeyGenerator(lambda: next(his), max_lo=7)
        found = in_threads(8, lambda _: [generator.generate_key() for _ in range(500)])
        assert sorted(chain.from_iterable(found)) == list(range(4000))


FORK = f"""
import ctypes, os, signal, sys, threading
from django_hilo.counters import HiLoKeyGenerator

his, writer = os.pipe()  # shared by all processes
os.write(writer, bytes(range(9)))
results, result = os.pipe()
fork = {{"os": os.fork, "c": ctypes.PyDLL(None).fork}}[sys.argv[1]]

def in_child(work):
    child = fork()
    if child == 0:
        signal.alarm({PATIENCE})  # ends one that hangs
        os.write(result, repr(work()).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return eval(os.read(results, 999))

def some():
    return [keys.generate_key() for _ in range(15)]
"""


@pytest.mark.parametrize("fork", ["os", "c"])
class TestFork:
    """By Python, or by a server in C, which calls none of Python's hooks."""

    def test_parent_and_child_share_no_key(self, fork):
        code = """
keys = HiLoKeyGenerator(lambda: os.read(his, 1)[0], 10)
found = [*some(), *in_child(lambda: some() + in_child(some)), *some()]
print(len(found), len(set(found)))
"""
        assert output_of(sys.executable, "-c", FORK + code, fork) == "60 60"

    def test_the_child_does_not_wait_for_a_thread_of_the_parent(self, fork):
        code = """
parent, inside, go_on = os.getpid(), threading.Event(), threading.Event()

def get_next_hi():
    if os.getpid() == parent:
        inside.set()
        go_on.wait()
    return os.read(his, 1)[0]

keys = HiLoKeyGenerator(get_next_hi, 10)
found = []
thread = threading.Thread(target=lambda: found.extend(some()), daemon=True)
thread.start()
inside.wait()
found += in_child(some)
go_on.set()
thread.join()
print(len(found), len(set(found)))
"""
        assert output_of(sys.executable, "-c", FORK + code, fork) == "30 30"


@pytest.mark.parametrize(
    ("class_name", "collection"),
    [
        ("Order", "orders"),
        ("OrderLine", "OrderLines"),
        ("SalesPerson", "SalesPeople"),
        ("Person", "people"),
        ("Child", "children"),
        ("Status", "statuses"),
        ("Address", "addresses"),
        ("Fish", "fish"),
        ("Series", "series"),
        ("Analysis", "analyses"),
        ("Quiz", "quizzes"),
        ("Data", "data"),
        ("order", "orders"),
        ("URL", "URLS"),
        ("Item2", "item2s"),
        ("X", "xes"),
    ],
)
def test_default_collection_by_ravendbs_convention(class_name, collection):
    assert default_collection(class_name) == collection


def test_a_thread_that_comes_back_to_itself_gets_an_error():
    """As in a finalizer, or a signal's handler."""
    errors = []

    def get_next_hi():
        with pytest.raises(NestedReservation) as caught:
            keys.generate_key()
        errors.append(caught.value)
        return 3

    keys = HiLoKeyGenerator(get_next_hi, max_lo=10)
    assert [keys.generate_key(), keys.generate_key()] == [30, 31]
    assert len(errors) == 1
