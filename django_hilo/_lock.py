"""The lock of everything that a thread may come back to in the middle of a step."""

import sys
import threading
from typing import Any

# The class behind threading's function: gevent's, if it has patched threading.
_RLock: Any = type(threading.RLock())


class Lock(_RLock):  # type: ignore[misc]  # of a class that is known at run time only
    """A re-entrant lock that an interrupt does not leave held.

    Re-entrant, because only such a lock knows the thread that holds it.
    """

    # Whether this thread holds it: not a flag, which a signal handler could leave set.
    is_held_here = _RLock._is_owned  # of threading's conditions

    # Python 3.14 calls the handlers of signals between a lock's own __enter__ and the
    # block (gh-148874, mended in 3.15), but not after one that is written in Python.
    if sys.version_info[:2] == (3, 14):

        def __enter__(self) -> bool:
            try:
                return self.acquire()
            except BaseException:
                if self.is_held_here():
                    self.release()
                raise
