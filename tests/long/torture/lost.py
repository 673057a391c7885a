"""Objects whose rows were rolled back or refused, to be saved again later.

Such an object belongs to the thread whose transaction lost its row. When the outermost
block has ended, any thread of the process may take it.
"""

import threading
from collections import defaultdict, deque
from typing import Any

from tests.long.torture.evidence import KEPT, UNDONE
from tests.long.torture.notes import note

# What is saved again should be recent: there are more lost rows than that.
_MOST = 200


class _Mine(threading.local):
    def __init__(self) -> None:
        # The objects of each open block, by their identity.
        self.blocks: list[dict[int, Any]] = []
        self.lost: dict[int, Any] = {}


_mine = _Mine()
_shared: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=_MOST))


def open_block() -> None:
    """Note that a block begins."""
    note("open")
    _mine.blocks.append({})


def shut_block(outcome: str) -> None:
    """Note how the innermost block ended; if it is unknown, its objects are left."""
    note("shut", outcome)
    objects = _mine.blocks.pop()
    if outcome == UNDONE:
        _mine.lost.update(objects)
    elif outcome == KEPT and _mine.blocks:
        _mine.blocks[-1].update(objects)
    _share()


def hold(*objects: Any) -> None:
    """Let objects be lost if the innermost block is undone."""
    _mine.blocks[-1].update({id(each): each for each in objects})


def add(*objects: Any) -> None:
    """Add objects whose rows were refused, after the block of the refusal."""
    _mine.lost.update({id(each): each for each in objects})
    _share()


def take(model: str, count: int) -> list[Any]:
    """Return some lost objects of a model: of the own transaction, then of others."""
    lost = [each for each in _mine.lost.values() if type(each).__name__ == model]
    taken = lost[:count]
    for each in taken:
        del _mine.lost[id(each)]
    while len(taken) < count:
        try:
            taken.append(_shared[model].popleft())
        except IndexError:
            break
    return taken


def forget() -> None:
    """Leave all objects to the parent of this process."""
    _mine.blocks.clear()
    _mine.lost.clear()
    _shared.clear()


def _share() -> None:
    if not _mine.blocks:
        for each in _mine.lost.values():
            _shared[type(each).__name__].append(each)
        _mine.lost.clear()
