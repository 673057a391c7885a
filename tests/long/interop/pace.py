"""How Python programs draw: at a pace, with a time stamp for each number."""

import time
from collections.abc import Callable
from pathlib import Path


def draw(
    number: Callable[[int], int], count: str, file: str, start: str, seconds: str
) -> None:
    """Do what mixing.py asks of ``draw``; ``number`` gets 0, 1, 2 ..."""
    lines = []
    for i in range(int(count)):
        due = float(start) + i * float(seconds) / int(count)
        time.sleep(max(due - time.time(), 0))
        drawn = number(i)
        lines.append(f"{time.time_ns() // 1000} {drawn}\n")
    Path(file).write_text("".join(lines))
