"""The journals of a process: a line per event, on disk before the thread goes on.

    <monotonic ns> <word> <arguments>

A COUNTER is the key of a HiLoDocument, SPAN is ``low-high``.

``reserving`` then ``range COUNTER LOW HIGH bound|free``;
``returning COUNTER HIGH LAST`` then ``returned`` or ``refused``;
``locked`` after either, where a lock kept it from being done;
``given COUNTER SPAN ...`` from this process's ranges, ``lent COUNTER SPAN`` of a range
that the program reserved for itself, ``got COUNTER SPAN ...`` from the site's;
``counting COLLECTION`` then ``counted COLLECTION NUMBER``, gapless;
``making MODEL NAME ...`` before rows are inserted, ``born MODEL ID NAME`` after;
``had COUNTER SPAN ...`` what objects had got whose rows were refused, or not tried;
``kept MODEL ID NAME`` an object whose row was rolled back or refused and that was saved
again, with its former id, or ``reborn MODEL ID NAME``, with another;
``choosing NUMBER`` then ``chosen ID NAME`` a row with an explicit id;
``collided own|chosen ID ...`` rows that the table refused;
``open`` and ``shut kept|undone|unknown`` a block, or what acts as one;
``step KIND`` and ``did KIND``; ``alone SECONDS``; ``forking``, ``forked SEAT``;
``web``; ``ended HOW``; ``retry TEXT``; ``unstored NUMBER`` a floor; ``warned TEXT``;
``error TYPE TEXT`` an expected one; ``failed TEXT``.
"""

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from tests.long.torture import seats
from tests.support import journal

WEB_SEAT = seats.WEB

_local = threading.local()
_folder: Path | None = None
_seat = 0


def open_for(folder: Path, seat: int) -> None:
    """Let the journals of this process be those of a seat."""
    global _folder, _seat
    _folder, _seat = folder, seat
    _local.pid = None


def note(word: str, *rest: object) -> None:
    """Write a line into the journal of this thread."""
    if _folder is None:
        return  # a process that only starts others
    if getattr(_local, "pid", None) != os.getpid():
        thread = str(threading.get_native_id())
        journal.use(journal.Journal(_folder, _seat, thread))
        _local.pid = os.getpid()
    journal.mine().note(word, *rest)


def note_end(how: str) -> None:
    """Note that nothing more will come."""
    note("ended", how)


def spans_of(numbers: Iterable[int]) -> list[str]:
    """Return numbers as spans, in their order."""
    spans: list[str] = []
    low = high = None
    for number in numbers:
        if high is not None and number == high + 1:
            high = number
            continue
        if low is not None:
            spans.append(f"{low}-{high}")
        low = high = number
    if low is not None:
        spans.append(f"{low}-{high}")
    return spans
