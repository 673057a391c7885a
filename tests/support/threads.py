"""Threads that a test waits for."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections

from tests.support.patience import PATIENCE

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result]) -> Result:
    """Run something in a thread of its own; return or raise what it does."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            results.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run something in threads beside each other; all must end."""
    threads = [threading.Thread(target=work, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
