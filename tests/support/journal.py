"""What one thread noted: a line per event, written before the thread goes on.

    <monotonic ns> <word> <arguments>

``range LOW HIGH bound|free`` reserved; ``returned LAST`` gave back;
``given ID ...`` taken outside a transaction;
``born ID NAME`` a row, ``drawn ID`` an id alone, both taken inside a transaction, which
ended with ``committed ID ...`` (those that stand), ``rolledback`` or ``unknown``;
``forked SEAT``; ``ended normally|_exit``; ``error TYPE TEXT`` an expected one;
``retry TEXT`` django_hilo tried again; ``repeated TEXT`` a new row's id was in the
table; ``failed TEXT``.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One line of a journal."""

    at: int
    word: str
    rest: str


class Journal:
    """The journal of one thread."""

    def __init__(self, folder: Path, seat: int, thread: str) -> None:
        # Unbuffered: a buffer would die with a killed process, and be written twice
        # after a fork.
        self._file = (folder / f"{seat:04}-{os.getpid()}-{thread}.log").open("ab", 0)

    def note(self, word: str, *rest: object) -> None:
        """Write a line."""
        text = " ".join(map(str, rest)).replace("\n", "\\n")
        self._file.write(f"{time.monotonic_ns()} {word} {text}\n".encode())


_mine = threading.local()


def use(journal: Journal) -> None:
    """Make a journal the one of this thread."""
    _mine.journal = journal


def mine() -> Journal:
    """Return the journal of this thread."""
    journal: Journal = _mine.journal
    return journal


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of a journal; a line that a kill cut short counts as unsaid."""
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                at, word, rest = line[:-1].split(" ", 2)
                yield Entry(int(at), word, rest)
