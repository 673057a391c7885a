"""The end of a journal that is still being written."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path


class Tail:
    """Counts the lines of one worker's journal as they come."""

    def __init__(self, folder: Path, seat: int) -> None:
        self._folder, self._pattern = folder, f"{seat:04}-*.log"
        self._read = 0
        self._counts: Counter[str] = Counter()
        self._last: deque[str] = deque(maxlen=9)

    def counts(self) -> Counter[str]:
        """Return how many lines there are of each word, and calls of each outcome."""
        for path in self._folder.glob(self._pattern):
            with path.open() as file:
                file.seek(self._read)
                while (line := file.readline()).endswith("\n"):
                    self._note(line)
                    self._read = file.tell()
        return self._counts

    def _note(self, line: str) -> None:
        words = line.split()
        self._counts[words[1]] += 1
        if words[1] == "call":
            self._counts[words[-1].partition(":")[0]] += 1
        self._last.append(line)

    def last_lines(self) -> str:
        return "".join(self._last)
