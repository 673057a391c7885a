"""What the clients of a server were told, and what it must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN

# There a range is reserved in the transaction that saves, and is undone with it: a
# number that only a rolled-back transaction saw may come again, or stay above Max.
UNDONE_WITH_THE_SAVE = CHOSEN == "sqlite"


class Answer(NamedTuple):
    """One id, who gave it, and when (the machine's monotonic clock)."""

    key: str
    kept: bool
    process: int
    began: int
    ended: int

    @property
    def number(self) -> int:
        return parse(self.key).number


@dataclass
class Journal:
    """The answers of one server, from its start to its end."""

    answers: list[Answer] = field(default_factory=list)

    def __iadd__(self, answers: Iterable[Answer]) -> Journal:
        self.answers += answers
        return self

    @property
    def processes(self) -> set[int]:
        return {answer.process for answer in self.answers}

    @property
    def newest(self) -> Answer:
        return max(self.answers, key=lambda answer: answer.number)

    def overlapped(self) -> bool:
        """Whether two processes were at work on an answer at the same time."""
        answers = sorted(self.answers, key=lambda answer: answer.began)
        return any(
            earlier.process != later.process and later.began < earlier.ended
            for earlier, later in pairwise(answers)
        )

    def check(self) -> Gaps:
        """Hold the answers against each other and against the table.

        Return which numbers up to Max nobody was given.
        """
        given = Counter(
            answer.key
            for answer in self.answers
            if answer.kept or not UNDONE_WITH_THE_SAVE
        )
        twice = [key for key, times in given.items() if times > 1]
        assert not twice, f"given twice: {twice}"
        rows = set(Order.objects.exclude(name="master").values_list("pk", flat=True))
        told = {answer.key for answer in self.answers if answer.kept}
        assert rows == told, f"rows nobody was told of, or the reverse: {rows ^ told}"
        masters = Order.objects.filter(name="master").values_list("pk", flat=True)
        counter = HiLoDocument.objects.get(collection="orders", node_tag="A")
        given = {parse(key).number for key in masters} | {
            answer.number
            for answer in self.answers
            if answer.kept or answer.number <= counter.max or not UNDONE_WITH_THE_SAVE
        }
        last = max(given)
        if UNDONE_WITH_THE_SAVE:
            # A thread may wait there for another's range and then reserve one as well:
            # nobody uses that, and it goes back as a whole, to the end of the other.
            last = max(last, counter.low - 1)
        return Gaps(
            inside=len(set(range(1, last + 1)) - given), at_the_end=counter.max - last
        )


class Gaps(NamedTuple):
    """How many numbers were lost: up to the last one given, and of the newest range."""

    inside: int
    at_the_end: int
