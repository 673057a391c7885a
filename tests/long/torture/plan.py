"""What each process does, and which faults there are: pure functions of the seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.long.torture.seats import child_seat

# How often each operation is chosen, outside and inside transactions.
_IDS = {
    "next_id": 6,
    "next_ids": 6,
    "manager_next_ids": 2,
    "iter_ids": 2,
    "assign_ids": 3,
    "next_numbers": 3,
}
_ROWS = {
    "create": 6,
    "save": 3,
    "bulk_create": 4,
    "get_or_create": 2,
    "create_integer": 4,
    "bulk_create_integer": 3,
    "create_plain": 4,
    "bulk_create_plain": 2,
    "explicit": 3,
    "gapless": 3,
    "create_child": 3,
    "create_line": 3,
    "refused": 3,
    "save_again": 12,
}
_LOANS = {"lend": 4, "return_ranges": 2}
_WEB = {
    "rest_ids": 3,
    "rest_range": 3,
    "rest_gapless": 1,
    "rest_raise": 1.5,
    "raven_range": 3,
}
OUTSIDE: dict[str, float] = {
    "transaction": 30,
    **_IDS,
    **_ROWS,
    **_LOANS,
    **_WEB,
    "close": 2,
    "locked_by_itself": 0.2,
}
INSIDE: dict[str, float] = {
    **_IDS,
    **_ROWS,
    "lend": 1,
    "return_ranges": 1,
    "block": 12,
    "wait": 3,
    "fork_inside": 0.5,
}
FORK = "fork"
DEATHS = ("die", "die_inside")

# How a transaction ends, and a block in one.
ENDS_OF_TRANSACTIONS = {
    "keep": 12,
    "raise": 4,
    "set_rollback": 2,
    "raw_rollback": 1,
    "close": 1,
}
ENDS_OF_BLOCKS = {
    "keep": 4,
    "raise": 3,
    "set_rollback": 2,
    "savepoint_rollback": 2,
    "savepoint_commit": 1,
    "raw_rollback_to": 2,
    "raw_release": 1,
    "without_savepoint": 1,
}
DEEPEST = 5
# How far over a number of its own a process chooses one.
LONGEST_JUMP = 300

# What is done about a lent range.
RETURNS = {"proper": 4, "keep": 2, "forged": 3, "replayed": 3, "late": 2, "below": 2}
RAVEN_RETURNS = {"proper": 4, "keep": 2, "replayed": 4, "below": 3}

# Whose objects are saved again, and how.
AGAIN = {
    "Order": 4,
    "Item": 4,
    "OrderLine": 3,
    "Restaurant": 2,
    "Person": 2,
    "Plain": 1,
}
WAYS = {
    "save": 4,
    "bulk_create": 3,
    "assign_ids, save": 2,
    "assign_ids, bulk_create": 2,
}

# The most ids and rows of an operation; the most numbers of a lent range.
_MOST = {
    **{"next_id": 30, "iter_ids": 30, "next_ids": 30_000, "manager_next_ids": 300},
    **{"next_numbers": 5_000, "rest_ids": 10_000, "bulk_create": 60},
    **{"bulk_create_integer": 60, "bulk_create_plain": 60},
}
_LENT = {
    "lend": (2_000, RETURNS),
    "rest_range": (10_000, RETURNS),
    "raven_range": (10_000, RAVEN_RETURNS),
}

ENDS = {"exit": 5, "_exit": 1, "abrupt": 1, "kill": 1}
# Short ranges make the processes meet at the counter.
PROFILES: tuple[dict[str, Any], ...] = (
    {"hilo": {"CAPACITY": 4, "MAX_CAPACITY": 8}, "conn_max_age": None},
    {"hilo": {"CAPACITY": 16, "MAX_CAPACITY": 64}, "conn_max_age": 0},
    {"hilo": {}, "conn_max_age": None},
    {"hilo": {"MAX_CAPACITY": 256}, "conn_max_age": 0, "strict": True},
)


class Step(NamedTuple):
    """One operation, with what it needs to know, and what happens inside it."""

    kind: str
    arguments: Mapping[str, Any] = {}
    body: tuple[Step, ...] = ()

    def lines(self, indent: int = 0) -> Iterator[str]:
        """Yield the step as text."""
        told = " ".join(f"{name}={value}" for name, value in self.arguments.items())
        yield f"{'  ' * indent}{self.kind} {told}".rstrip()
        for step in self.body:
            yield from step.lines(indent + 1)


class Plan(NamedTuple):
    """What one process does, thread by thread."""

    seat: int
    profile: Mapping[str, Any]
    threads: tuple[tuple[Step, ...], ...]
    end: str

    def lines(self) -> Iterator[str]:
        """Yield the plan as text."""
        yield f"seat {self.seat}: {dict(self.profile)}, ends by {self.end}"
        for number, steps in enumerate(self.threads):
            yield f"  thread {number}"
            for step in steps:
                yield from step.lines(2)


class Fault(NamedTuple):
    """What happens to processes and servers, after a pause in seconds."""

    pause: float
    kind: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"+{self.pause:.2f} s {self.kind} {told}".rstrip()


def plan_of(seed: str, seat: int) -> Plan:
    """Return what the process of a seat does."""
    chance = random.Random(f"{seed}/{seat}")
    threads = tuple(
        _Planner(seed, seat, number).steps() for number in range(chance.randint(1, 3))
    )
    profile = dict(chance.choice(PROFILES))
    profile["obeys_sigterm"] = chance.random() < 0.7
    return Plan(seat, profile, threads, _pick(chance, ENDS))


def plan_of_child(seed: str, seat: int) -> Plan:
    """Return what a child of a fork does: a little, in one thread."""
    chance = random.Random(f"{seed}/{seat}")
    steps = _Planner(seed, seat, 0).steps(most=8, forks=False)
    return Plan(seat, {}, (steps,), _pick(chance, {"exit": 3, "_exit": 1, "kill": 1}))


def faults_of(seed: str) -> Iterator[Fault]:
    """Yield faults without end; each kind comes once in a round."""
    chance = random.Random(f"{seed}/faults")
    while True:
        kinds = [kind for kind, times in _FAULTS.items() for _ in range(times)]
        chance.shuffle(kinds)
        for kind in kinds:
            arguments = {name: make(chance) for name, make in _ARGUMENTS[kind].items()}
            yield Fault(round(chance.uniform(0.1, 0.9), 2), kind, arguments)


_FAULTS = {
    "kill": 3,
    "terminate": 2,
    "stop": 2,
    "stranger": 2,
    "long_stranger": 1,
    "end_sessions": 2,
    "restart": 1,
    "admin": 2,
    "kill_web": 1,
}
_Make = Callable[[random.Random], Any]


def _share(chance: random.Random) -> float:
    return round(chance.random(), 3)


def _seconds(least: float, most: float) -> _Make:
    return lambda chance: round(chance.uniform(least, most), 2)


# "who" is a place among those that run then, from 0 to 1.
_ARGUMENTS: dict[str, dict[str, _Make]] = {
    "kill": {"who": _share},
    "terminate": {"who": _share},
    "stop": {"who": _share, "seconds": _seconds(0.1, 2.5)},
    "stranger": {
        "seconds": _seconds(0.1, 1.0),
        "counter": lambda chance: chance.choice(("orders/A", "plain-things/A")),
    },
    # Longer than LOCK_TIMEOUT.
    "long_stranger": {
        "seconds": _seconds(2.5, 3.5),
        "counter": lambda chance: chance.choice(("orders/A", "plain-things/A")),
    },
    "end_sessions": {"share": lambda chance: chance.choice((0.2, 0.5, 1.0))},
    "restart": {"seconds": _seconds(0.0, 1.0)},
    "admin": {"by": lambda chance: int(50_000 ** chance.uniform(0.5, 1))},
    "kill_web": {"signal": lambda chance: chance.choice(("KILL", "TERM"))},
}


class _Planner:
    """Chooses the steps of one thread."""

    def __init__(self, seed: str, seat: int, thread: int) -> None:
        self._seat = seat
        self._thread = thread
        self._random = random.Random(f"{seed}/{seat}/{thread}")
        self._forks = 0

    def steps(self, most: int = 60, *, forks: bool = True) -> tuple[Step, ...]:
        self._may_fork = forks
        kinds = dict(OUTSIDE)
        if forks and self._thread == 0:
            kinds[FORK] = 3
        steps = [
            self._step(kinds) for _ in range(self._random.randint(most // 6, most))
        ]
        if forks and self._random.random() < 0.05:
            steps.append(Step("die"))
        return tuple(steps)

    def _step(self, kinds: Mapping[str, float], depth: int = 0) -> Step:
        kind = _pick(self._random, kinds)
        if kind in ("transaction", "block"):
            return self._nested(kind, depth + 1)
        if kind in _MOST:
            arguments = {"count": self._count(_MOST[kind])}
        elif kind in _LENT:
            arguments = self._loan(*_LENT[kind])
        else:
            arguments = getattr(self, f"_{kind}", dict)()
        if depth:
            arguments["catches"] = self._random.random() < 0.5
        return Step(kind, arguments)

    def _nested(self, kind: str, depth: int) -> Step:
        kinds = {**INSIDE, "fork_inside": INSIDE["fork_inside"] * self._may_fork}
        if depth >= DEEPEST:
            del kinds["block"]
        body = [self._step(kinds, depth) for _ in range(self._random.randint(1, 4))]
        if self._may_fork and self._random.random() < 0.003:
            body.append(Step("die_inside"))
        ends = ENDS_OF_TRANSACTIONS if kind == "transaction" else ENDS_OF_BLOCKS
        arguments: dict[str, Any] = {"end": _pick(self._random, ends)}
        if kind == "transaction":
            arguments["durable"] = self._random.random() < 0.2
        return Step(kind, arguments, tuple(body))

    def _count(self, most: int) -> int:
        """Choose a count: few as often as many."""
        return int(most ** self._random.random())

    def _assign_ids(self) -> dict[str, Any]:
        return {"count": self._count(50), "saves": self._random.random() < 0.5}

    def _refused(self) -> dict[str, Any]:
        return {"count": self._count(20)}

    def _save_again(self) -> dict[str, Any]:
        model, way = _pick(self._random, AGAIN), _pick(self._random, WAYS)
        return {"model": model, "count": self._count(60), "way": way}

    def _explicit(self) -> dict[str, Any]:
        return {"jump": self._count(LONGEST_JUMP)}

    def _loan(self, most: int, ways: Mapping[str, float]) -> dict[str, Any]:
        size = self._count(most)
        used = self._random.randint(0, size)
        return {"size": size, "used": used, "then": _pick(self._random, ways)}

    def _rest_raise(self) -> dict[str, Any]:
        return {"by": self._count(50_000)}

    def _wait(self) -> dict[str, Any]:
        return {"seconds": round(self._random.uniform(0, 0.03), 3)}

    def _fork(self) -> dict[str, Any]:
        self._forks += 1
        return {"seat": child_seat(self._seat, self._thread, self._forks)}

    _fork_inside = _fork


def _pick(chance: random.Random, weights: Mapping[str, float]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]
