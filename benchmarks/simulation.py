"""Workers that reserve ranges of one counter: discrete events, the product's own rule.

Nothing is measured, so the figures are the same on each machine.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from django_hilo._allocation.capacity import next_capacity
from django_hilo.conf import settings
from django_hilo.counters.ranges import Capacity

# How long a reservation keeps the row locked: some round trips and a commit.
UNDER_LOCK = 0.012
# How many ids a worker takes in a second: each its own number, in these bounds.
SLOWEST, FASTEST = 0.5, 4.0


@dataclass
class Worker:
    """A process with one thread, which asks for one id at a time."""

    rate: float
    # Of its newest range.
    size: int = 0
    reserved_at: float = 0.0
    used_up_at: float = 0.0


@dataclass
class Outcome:
    """What came of a fleet."""

    timeouts: int = 0
    last_timeout: float = 0.0
    numbers: int = 0
    # When each reservation was committed, and the longest wait for one.
    ends: list[float] = field(default_factory=list)
    longest: float = 0.0
    # The share of the numbers that nobody gets if all workers stop at the end.
    unused: float = 0.0

    def rate(self, since: float, until: float) -> float:
        """Return the reservations in a second."""
        return sum(since <= end < until for end in self.ends) / (until - since)


class Fleet:
    """Workers, and the row that they lock in turn.

    They start at once, or evenly within ``start`` seconds. A worker whose wait ends by
    ``LOCK_TIMEOUT`` fails that request, and tries again at the next one.
    """

    def __init__(self, workers: int, capacity: int, start: float = 0.0) -> None:
        self.random = random.Random(1)
        self.capacity, self.start = capacity, start
        spread = FASTEST / SLOWEST
        shares = [self.random.random() for _ in range(workers)]
        self.workers = [Worker(SLOWEST * spread**share) for share in shares]
        self.found = Outcome()
        # When workers need a range; those that wait for the row, and since when.
        self.needs: list[tuple[float, int]] = []
        self.queue: deque[tuple[float, int]] = deque()

    def run(self, seconds: float) -> Outcome:
        """Let the fleet work for so long."""
        for number in range(len(self.workers)):
            self.ask_later(number, self.start * number / len(self.workers))
        free_at = 0.0
        while True:
            now = max(free_at, (self.queue or self.needs)[0][0])
            if now >= seconds:
                break
            while self.needs and self.needs[0][0] <= now:
                self.queue.append(heapq.heappop(self.needs))
            self.time_out(now)
            if self.queue:
                since, number = self.queue.popleft()
                free_at = now + UNDER_LOCK
                self.reserve(number, since, free_at)
        left = (each.rate * (each.used_up_at - seconds) for each in self.workers)
        unused = sum(numbers for numbers in left if numbers > 0)
        self.found.unused = unused / self.found.numbers
        return self.found

    def ask_later(self, number: int, now: float) -> None:
        """Let a worker need a range at its next request."""
        pause = self.random.expovariate(self.workers[number].rate)
        heapq.heappush(self.needs, (now + pause, number))

    def time_out(self, now: float) -> None:
        """Let those fail who have waited for too long."""
        longest = settings.LOCK_TIMEOUT
        while self.queue and self.queue[0][0] + longest <= now:
            since, number = self.queue.popleft()
            self.found.timeouts += 1
            self.found.last_timeout = now
            self.found.longest = longest
            self.ask_later(number, since + longest)

    def reserve(self, number: int, since: float, end: float) -> None:
        """Give a worker its next range."""
        worker, found = self.workers[number], self.found
        age, most = since - worker.reserved_at, settings.MAX_CAPACITY
        size = next_capacity(worker.size, age, self.capacity, most)
        waited = end - UNDER_LOCK - since
        worker.size = Capacity(size, worker.size, most).after(waited)
        worker.reserved_at = end
        # So many pauses between requests, which come at random.
        lasts = self.random.gammavariate(worker.size, 1 / worker.rate)
        worker.used_up_at = end + lasts
        heapq.heappush(self.needs, (worker.used_up_at, number))
        found.numbers += worker.size
        found.ends.append(end)
        found.longest = max(found.longest, end - since)
