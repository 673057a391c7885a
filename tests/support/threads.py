"""Threads that a test waits for."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.db import connections

from tests.support.patience import PATIENCE

Result = TypeVar("Result")


def begin(work: Callable[[], Any]) -> Callable[[], Any]:
    """Run something in a thread; what is returned waits, and returns or raises it."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            results.append(error)
        finally:
            connections.close_all()

    # One that hangs fails its test, and keeps no process from ending.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end() -> Any:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "it hangs"
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]

    return end


def in_thread(work: Callable[[], Result]) -> Result:
    """Run something in a thread of its own; return or raise what it does."""
    result: Result = begin(work)()
    return result


def in_threads(count: int, work: Callable[[int], Result]) -> list[Result]:
    """Run something in threads beside each other; return or raise what they do."""
    ends = [begin(partial(work, number)) for number in range(count)]
    return [end() for end in ends]
