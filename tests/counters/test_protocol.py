"""The code does what the model of docs/explanation/protocol.md does, step by step.

Processes are simulated: each has a memory and a connection of its own. After each step
of any of them, numbers, row and answers must be those that the model's twin foretells.
HILO_TEST_PROTOCOL=full takes more steps, and others each time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from django_hilo._allocation import burnt_numbers, in_transaction, memory
from django_hilo._allocation.cached_range import Skipped
from django_hilo._allocation.find import resolve
from django_hilo._database.transaction import ConnectionState, Mark, Outcome
from django_hilo._database.which_connection import note_own_lock
from django_hilo.counters import Range, floor, reservation, returning
from django_hilo.exceptions import ConcurrencyError, RangeNotReturned
from django_hilo.generator import next_numbers, return_ranges
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.counters.test_reservation import deadlock
from tests.long.protocol import twin
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.rollbacks import Undo

pytestmark = pytest.mark.django_db(transaction=True)

IS_FULL = os.environ.get("HILO_TEST_PROTOCOL") == "full"
CAPACITY = 4
ISSUER = "ravendb-"
STEPS = settings(
    derandomize=not IS_FULL,
    database=None,
    max_examples=1000 if IS_FULL else 60,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Simulated:
    """What a process of its own would have."""

    connection: Any
    pool: memory.Pool = field(default_factory=memory.Pool)
    transaction: Any = None

    @contextmanager
    def running(self) -> Iterator[None]:
        before = connections["default"], memory._pool
        connections["default"], memory._pool = self.connection, self.pool
        try:
            yield
        finally:
            self.pool = memory._pool
            connections["default"], memory._pool = before

    def end_transaction(self, error: Exception | None) -> None:
        block, self.transaction = self.transaction, None
        block.__exit__(type(error) if error else None, error, None)


@dataclass
class Sent:
    """A return under way: what the model says of it, and the call that carries it."""

    message: twin.Message
    deliver: Callable[[], int]


@dataclass
class Lent:
    """A range of a client that is no process of ours."""

    held: twin.Held
    reservation: Any


processes = st.integers(0, 2)
rarely = st.sampled_from([False] * 5 + [True])
any_one = st.integers(0, 99)
# Few, or no range would ever be the newest when it goes back.
RARE_STEPS = ["backup", "restore", "restore_alone", "raise_max"]
RARE_STEPS += ["insert_explicit", "forge", "crash", "fork"]
ANSWERS = ["heard", "heard", "lost", "never arrived"]


class Protocol(RuleBasedStateMachine):
    """Any step of any process, in any order, as in hilo.pml."""

    def __init__(self, simulated: list[Simulated], reached: set[str]) -> None:
        super().__init__()
        self.reached = reached
        *self.simulated, self.operator = simulated
        self.counter = twin.Counter()
        self.twins = [twin.Process(self.counter, CAPACITY) for _ in self.simulated]
        self.sent: list[Sent] = []
        self.lent: list[Lent] = []
        self.tickets: dict[int, str] = {}
        self.backups: list[tuple[twin.Row | None, dict[str, Any]]] = [(None, {})]
        # Whether the counter fell under numbers that were given: then each process is
        # safe from itself alone.
        self.fell = False
        for each in simulated:
            each.pool = memory.Pool()
        with self.operator.running():
            HiLoDocument.objects.all().delete()
            Order.objects.all()._raw_delete("default")

    def teardown(self) -> None:
        for each in self.simulated:
            if each.transaction is not None:
                with each.running():
                    each.end_transaction(Undo())

    def choose(
        self, which: int, is_meant: Callable[[twin.Process], object]
    ) -> tuple[Simulated, twin.Process]:
        """Return one of the processes that are meant."""
        pairs = zip(self.simulated, self.twins, strict=True)
        meant = [(process, model) for process, model in pairs if is_meant(model)]
        return meant[which % len(meant)]

    # ---- what must hold

    def check_given(self, process: twin.Process, numbers: list[int]) -> None:
        if not self.fell:
            again = self.counter.given.intersection(numbers)
            assert not again, f"given twice: {sorted(again)}"
        for other in self.twins:
            if not self.fell or other is process:
                again = other.tentative.intersection(numbers)
                assert not again, f"given twice in one transaction: {sorted(again)}"

    @invariant()
    def the_row_is_the_models(self) -> None:
        row = self.counter.committed
        with self.operator.running():
            stored = HiLoDocument.objects.filter(pk="orders/A").first()
        if stored is None or row is None:
            assert (stored, row) == (None, None)
            return
        found = (stored.max, stored.floor, stored.low)
        assert found == (row.max, row.floor, row.low), (found, row)
        known = self.tickets.get(row.ticket)
        if known is None:
            assert stored.ticket not in self.tickets.values(), "a ticket came again"
            self.tickets[row.ticket] = stored.ticket
        else:
            assert stored.ticket == known, "a ticket changed, or a change left it"

    # ---- use, commit, rollback

    @rule(who=processes, n=st.sampled_from([1, 1, 1, 2, 6]), unsure=rarely)
    def use(self, who: int, n: int, unsure: bool = False) -> None:
        process, model = self.simulated[who], self.twins[who]
        writes = model.would_write(n)
        if writes and not self.counter.is_free_for(model):
            return
        unsure = unsure and writes and not model.is_bound
        own = set(model.own)
        was_tentative = set(model.tentative)
        expected = model.use(n, unsure=unsure)
        with process.running(), commit_unanswered() if unsure else nothing():
            numbers = next_numbers("orders", n)
        assert numbers == expected
        self.reached |= (
            {"unsure"} if unsure else {"bound"} if model.tentative else set()
        )
        assert not own.intersection(numbers), "given twice by one process"
        fresh = model.tentative - was_tentative
        model.tentative = was_tentative
        self.check_given(model, numbers)
        model.tentative |= fresh
        if not fresh:
            self.counter.given.update(numbers)

    @precondition(lambda self: not all(each.in_transaction for each in self.twins))
    @rule(which=any_one, locks=st.booleans())
    def begin(self, which: int, locks: bool = True) -> None:
        """Begin a transaction; ``locks``: it binds ranges, as all do on SQLite."""
        process, model = self.choose(which, lambda model: not model.in_transaction)
        with process.running():
            process.transaction = transaction.atomic()
            process.transaction.__enter__()
            if locks and CHOSEN != "sqlite":
                note_own_lock(process.connection)
        model.begin(binds=locks or CHOSEN == "sqlite")

    @precondition(lambda self: any(each.in_transaction for each in self.twins))
    @rule(which=any_one)
    def commit(self, which: int) -> None:
        process, model = self.choose(which, lambda model: model.in_transaction)
        with process.running():
            process.end_transaction(None)
        self.reached |= {"promoted"} if model.bound else set()
        self.counter.given |= model.tentative
        model.commit()

    @precondition(lambda self: any(each.in_transaction for each in self.twins))
    @rule(which=any_one)
    def rollback(self, which: int) -> None:
        process, model = self.choose(which, lambda model: model.in_transaction)
        with process.running():
            process.end_transaction(Undo())
        self.reached |= {"dropped"} if model.bound else set()
        model.rollback()

    @precondition(lambda self: self.counter.is_free_for(None))
    @rule(who=processes, n=st.integers(1, 3), fails=st.booleans())
    def transact(self, who: int, n: int, fails: bool) -> None:
        """Give numbers of a bound range, and commit or roll back."""
        model = self.twins[who]
        self.be_in_transaction(model)
        if model.binds:
            in_memory = sum(held.left for held in model.ranges)
            self.use(who, in_memory + n)
        in_transaction = [each for each in self.twins if each.in_transaction]
        end = self.rollback if fails else self.commit
        end(in_transaction.index(model))

    def be_in_transaction(self, model: twin.Process) -> None:
        if not model.in_transaction:
            idle = [each for each in self.twins if not each.in_transaction]
            self.begin(idle.index(model))

    @precondition(lambda self: any(each.burnt for each in self.twins))
    @rule(which=any_one, together=st.booleans(), inside=st.booleans())
    def save_again(
        self, which: int, together: bool = False, inside: bool = False
    ) -> None:
        """Save objects again that a rollback has left with their numbers.

        Those that do not keep them stay as they are: copies of them may ask again.
        """
        process, model = self.choose(which, lambda model: model.burnt)
        if inside:
            self.be_in_transaction(model)
        burnt = sorted(model.burnt)
        numbers = set(burnt) if together else {burnt[which % len(burnt)]}
        writes = not model.has_been_told(max(numbers))
        if writes and not self.counter.is_free_for(model):
            return
        was_tentative = set(model.tentative)
        expected = model.save_again(numbers)
        with process.running():
            sure = burnt_numbers.sure_numbers(resolve("orders", None), numbers)
        assert {n: mark is None for n, mark in sure.items()} == expected
        fresh, model.tentative = model.tentative - was_tentative, was_tentative
        self.check_given(model, list(sure))
        model.tentative |= fresh
        self.counter.given.update(sure.keys() - fresh)
        for number in numbers:
            answer = {None: "lost", True: "kept", False: "kept, bound"}
            self.reached.add(answer[expected.get(number)])

    # ---- returns

    @precondition(lambda self: any(each.newest for each in self.twins))
    @rule(which=any_one, answer=st.sampled_from(ANSWERS))
    def send(self, which: int, answer: str) -> None:
        process, model = self.choose(which, lambda model: model.newest)
        if not self.counter.is_free_for(model):
            return
        message = model.send()
        taken = answer != "never arrived" and self.counter.deliver(message)
        if taken and answer == "heard":
            model.hear(message)
        self.reached.add(f"return {answer}, {'taken' if taken else 'not taken'}")
        with process.running(), post(answer) as calls:
            returned = return_ranges()
        assert returned == (taken and answer == "heard")
        ((arguments, keywords),) = calls
        ticket = self.tickets.get(message.ticket, arguments[3])
        assert arguments == ("orders", message.high, message.last, ticket)
        call = partial(returning.return_range, *arguments, **keywords)
        self.sent.append(Sent(message, call))

    @precondition(lambda self: self.sent and self.counter.is_free_for(None))
    @rule(age=st.integers(0, 3))
    def deliver(self, age: int) -> None:
        """A return arrives late, or again."""
        sent = self.sent[-1 - min(age, len(self.sent) - 1)]
        is_taken = self.counter.deliver(sent.message)
        kind = "without a ticket" if sent.message.lent else "with a ticket"
        self.reached.add(f"late return {kind}, {'' if is_taken else 'not '}taken")
        with self.operator.running():
            assert self.is_taken(sent.deliver) == is_taken, sent

    def is_taken(self, deliver: Callable[[], int]) -> bool:
        try:
            deliver()
        except RangeNotReturned:
            return False
        return True

    def forge(self, which: int) -> None:
        """Somebody invents a return, without a ticket, or out of bounds."""
        row = self.counter.row or twin.Row()
        lowest = max(row.low - 1, row.floor)
        last = [lowest - 1, lowest, row.max, row.max + 1][which % 4]
        out_of_bounds = not lowest <= last <= row.max
        ticket = self.tickets.get(row.ticket, "") if out_of_bounds else ""
        forged = partial(returning.return_range, "orders", row.max, last, ticket)
        with self.operator.running():
            assert not self.is_taken(forged)

    # ---- ranges for others

    @precondition(lambda self: self.counter.is_free_for(None))
    @rule(size=st.integers(1, 4), ticketless=st.booleans())
    def lend(self, size: int, ticketless: bool) -> None:
        held = self.counter.reserve(size, 0, lent=ticketless)
        issuer = ISSUER if ticketless else ""
        with self.operator.running():
            reserved = reservation.reserve("orders", size, issuer=issuer)
        assert (reserved.range.low, reserved.range.high) == (held.next, held.high)
        self.lent.append(Lent(held, reserved))
        if ticketless:
            self.give_lent(held)  # RavenDB's clients ask when they need a number

    @precondition(lambda self: self.lent)
    @rule(age=st.integers(0, 3))
    def use_lent(self, age: int) -> None:
        self.give_lent(self.lent[-1 - min(age, len(self.lent) - 1)].held)

    def give_lent(self, held: twin.Held) -> None:
        if held.next <= held.high:
            if not self.fell:
                assert held.next not in self.counter.given, "given twice"
            self.counter.given.add(held.next)
            held.next += 1

    @precondition(lambda self: self.lent and self.counter.is_free_for(None))
    @rule(age=st.integers(0, 3), arrives=st.booleans())
    def send_lent(self, age: int, arrives: bool) -> None:
        lent = self.lent.pop(-1 - min(age, len(self.lent) - 1))
        held, reserved = lent.held, lent.reservation
        message = twin.Message(held.high, held.next - 1, held.ticket, held.lent)
        arguments = ("orders", held.high, held.next - 1)
        if held.lent:
            call = partial(returning.return_range, *arguments, issuer=ISSUER)
        else:
            call = partial(returning.return_range, *arguments, reserved.ticket)
        self.sent.append(Sent(message, call))
        if arrives:
            self.deliver(0)

    # ---- ends and beginnings

    def crash(self, which: int) -> None:
        process, model = self.choose(which, lambda model: True)
        if process.transaction is not None:
            with process.running():
                process.end_transaction(Undo())
        process.pool = memory.Pool()
        model.crash()

    def fork(self, which: int) -> None:
        parent = self.simulated[which % len(self.simulated)]
        self.crash(which + 1)
        child = self.simulated[(which + 1) % len(self.simulated)]
        parents = parent.pool
        with parent.running():
            memory.after_fork_in_child()
            child.pool = memory._pool
        parent.pool = parents

    # ---- the row, changed by others

    @precondition(lambda self: self.counter.is_free_for(None))
    @rule(step=st.sampled_from(RARE_STEPS), which=any_one)
    def seldom(self, step: str, which: int) -> None:
        getattr(self, step)(which)

    def insert_explicit(self, which: int) -> None:
        """A row comes whose number no range gave, over all that is known."""
        if self.fell:
            return
        number = 1 + which % 3 + self.counter.met
        self.counter.given.add(number)
        self.counter.raise_floor(number)
        with self.operator.running():
            floor.raise_floor("orders", number)

    def backup(self, which: int) -> None:
        with self.operator.running():
            row = HiLoDocument.objects.filter(pk="orders/A").values().first()
        self.backups.append((self.counter.row, row or {}))

    def restore(self, which: int) -> None:
        """By the book: all processes are stopped, and Max is raised before others."""
        for who in range(len(self.simulated)):
            self.crash(who)
        self.lent = []
        # A return without a ticket cannot be told from one of after the restore.
        self.sent = [sent for sent in self.sent if not sent.message.lent]
        self._fall_back(which)
        self.raise_max(which)
        self.fell = False

    def restore_alone(self, which: int) -> None:
        """The counter falls under processes that go on."""
        self._fall_back(which)
        self.fell = True

    def _fall_back(self, which: int) -> None:
        row, columns = self.backups[which % len(self.backups)]
        self.counter.row = row
        with self.operator.running():
            HiLoDocument.objects.filter(pk="orders/A").delete()
            if columns:
                HiLoDocument.objects.bulk_create([HiLoDocument(**columns)])

    def raise_max(self, which: int) -> None:
        highest = max(self.counter.given, default=0)
        if highest:
            self.counter.raise_floor(highest)
        with self.operator.running():
            insert_by_sql(highest)
            call_command("hilo_raise_max", "orders", verbosity=0)


def insert_by_sql(number: int) -> None:
    """Let the table have a row with this number, unless it is 0, and no other."""
    Order.objects.all()._raw_delete("default")
    if number:
        with connections["default"].cursor() as cursor:
            sql = "INSERT INTO records_order (id, name) VALUES (%s, '')"
            cursor.execute(sql, [f"orders/{number}-A"])


@contextmanager
def nothing() -> Iterator[None]:
    yield


@contextmanager
def commit_unanswered() -> Iterator[None]:
    """Lose the answer to the next COMMIT of a reservation."""
    failures = [deadlock()]

    def lose_answer(change: Callable[..., Any], *arguments: Any) -> Any:
        found = change(*arguments)
        if found and failures:
            raise failures.pop()
        return found

    with pytest.MonkeyPatch.context() as patch:
        change = reservation._LockedChange.__call__
        patch.setattr(
            reservation._LockedChange, "__call__", lambda *of: lose_answer(change, *of)
        )
        yield


@contextmanager
def post(answer: str) -> Iterator[list[Any]]:
    """Note the calls that return a range; lose them, or the answer to them."""
    real = returning.return_range
    calls: list[Any] = []

    def carry(*arguments: Any, **keywords: Any) -> int:
        calls.append((arguments, keywords))
        if answer == "never arrived":
            raise ConcurrencyError(answer)
        last = real(*arguments, **keywords)
        if answer == "lost":
            raise ConcurrencyError(answer)
        return last

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(returning, "return_range", carry)
        yield calls


@pytest.fixture
def reached() -> set[str]:
    """Return what will have come to pass."""
    return set()


@pytest.fixture
def protocol(settings, reached) -> Iterator[Callable[[], Protocol]]:
    """Make state machines, all on the same four connections."""
    sizes = {"CAPACITY": CAPACITY, "MAX_CAPACITY": CAPACITY}
    settings.HILO = {**settings.HILO, **sizes}
    simulated = [Simulated(connections.create_connection("default")) for _ in range(4)]
    yield partial(Protocol, simulated, reached)
    for each in simulated:
        each.connection.close()


def test_the_code_follows_the_model(protocol, reached):
    run_state_machine_as_test(protocol, settings=STEPS)
    assert {
        "unsure",
        "return heard, taken",
        "return heard, not taken",
        "return lost, taken",
        "return never arrived, not taken",
        "late return with a ticket, taken",
        "late return with a ticket, not taken",
        "late return without a ticket, taken",
        "late return without a ticket, not taken",
        "bound",
        "promoted",
        "dropped",
        "kept",
        "kept, bound",
        "lost",
    } <= reached


def ravendbs_return(
    collection: str, high: int, last: int, *_: Any, using: str = "default", **__: Any
) -> int:
    """RavenDB's rule in place of ours: no lower bound, no ticket."""

    def give_back(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        if high != document.max or last > document.max:
            raise RangeNotReturned
        return {"max": last}

    reservation.change_counter(collection, "A", using, give_back)
    return last


def without_bound(
    collection: str,
    high: int,
    last: int,
    ticket: str = "",
    *,
    issuer: str = "",
    using: str = "default",
    **_: Any,
) -> int:
    """Our rule without its lower bound."""

    def give_back(document: HiLoDocument, prefix: str) -> dict[str, Any]:
        is_newest = issuer or document.ticket == ticket
        if high != document.max or last > high or not is_newest:
            raise RangeNotReturned
        return {"max": last}

    reservation.change_counter(collection, "A", using, give_back)
    return last


def without_minimum(
    collection: str, node_tag: str, wanted: Any, using: str, *column: Any
) -> Any:
    return RESERVE(collection, node_tag, wanted._replace(minimum=0), using, *column)


def share_at_once(counter: Any, mark: Mark, count: int) -> None:
    """Bind a range to the transaction, and give it to the pool before the commit."""
    BIND(counter, mark, count)
    held = counter.memory
    held.add(in_transaction.bound_to(mark, held).ranges[-1:])


def told_for_good(*arguments: Any) -> list[tuple[Skipped, None]]:
    return [(each, None) for each, _ in TOLD(*arguments)]


RESERVE, BIND = reservation.reserve_range, in_transaction.bind
TOLD = burnt_numbers._told
ALL = Skipped(0, 2**63)
LOST = [("begin", 0), ("use", 0, 1), ("rollback", 0)]
REPLAY = [("use", 0, 1), ("send", 0, "heard"), ("lend", 3, False), ("deliver", 0)]
# Where it is, what stands in its place, and the steps that show it.
FAULTS = {
    "RavenDB's return": (returning, "return_range", ravendbs_return, REPLAY),
    "no ticket": (returning, "compare_digest", lambda *tickets: True, REPLAY),
    "no lower bound": (
        returning,
        "return_range",
        without_bound,
        [("use", 0, 5), ("use", 1, 1), ("forge", 0)],
    ),
    "a ticket that stays": (
        reservation,
        "new_ticket",
        lambda issuer="": f"{issuer}1",
        [("use", 0, 1), ("use", 1, 1)],
    ),
    "the highest seen is not told": (
        reservation,
        "reserve_range",
        without_minimum,
        [("use", 0, 1), ("restore_alone", 0), ("use", 0, 5)],
    ),
    "a child keeps the ranges": (
        memory,
        "after_fork_in_child",
        lambda: None,
        [("use", 0, 1), ("fork", 0), ("use", 1, 1)],
    ),
    "a rollback leaves the range": (
        ConnectionState,
        "look_for",
        lambda *_: Outcome.OPEN,
        [*LOST, ("begin", 0), ("use", 0, 1), ("commit", 0)],
    ),
    "a bound range is shared at once": (
        in_transaction,
        "bind",
        share_at_once,
        [*LOST, ("use", 0, 1)],
    ),
    "a burnt number is given again": (
        memory.Memory,
        "burn",
        lambda *_: None,
        [*LOST, ("use", 0, 1)],
    ),
    "every burnt number is kept": (
        burnt_numbers,
        "_told",
        lambda *_: [(ALL, None)],
        [*LOST, ("use", 1, 1), ("save_again", 0)],
    ),
    "a bound answer is for good": (
        burnt_numbers,
        "_told",
        told_for_good,
        [*LOST, ("save_again", 0, False, True), ("rollback", 0)],
    ),
}


def play(machine: Protocol, steps: list[Any]) -> None:
    try:
        for name, *arguments in steps:
            getattr(machine, name)(*arguments)
            machine.the_row_is_the_models()
    finally:
        machine.teardown()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_code_is_found(fault, protocol, monkeypatch):
    *place, stand_in, steps = FAULTS[fault]
    play(protocol(), steps)
    monkeypatch.setattr(*place, stand_in)
    with pytest.raises(AssertionError):
        play(protocol(), steps)


def steps_of(trace: str) -> list[str]:
    """Return the lines of a trace that the page shows under a heading."""
    docs = (PROJECT / "docs/explanation/protocol.md").read_text()
    (lines,) = re.findall(rf"## {trace}\n.*?```text\n(.*?)```", docs, re.DOTALL)
    return lines.splitlines()


class Played:
    """The steps of a trace, done by the code."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.next: dict[str, int] = {}
        self.given: list[int] = []
        self.sent: list[Any] = []

    def play(self, line: str) -> None:
        who, verb, *_ = line.split()
        numbers = [int(number) for number in re.findall(r"\d+", line)]
        if verb == "reserves":
            low, high = numbers[:2]
            reserved = reservation.reserve("orders", high - low + 1)
            assert reserved.range == Range(low, high)
            self.held[who], self.next[who] = reserved, low
        elif verb == "uses":
            assert self.next[who] == numbers[0]
            self.given.append(numbers[0])
            self.next[who] += 1
        elif verb == "returns":
            last, high = numbers[:2]
            assert (self.next[who] - 1, self.held[who].range.high) == (last, high)
            self.sent.append(("orders", high, last, self.held.pop(who).ticket))
            returning.return_range(*self.sent[-1])
        else:
            assert line.startswith("The return of what is over"), line
            returning.return_range(*self.sent[-1])
        shown = re.search(r"\(Max (\d+), low (\d+)\)", line)
        if shown:
            row = HiLoDocument.objects.values_list("max", "low").get()
            assert row == (int(shown[1]), int(shown[2]))


class TestTheTraceOfTheDocs:
    def test_it_comes_to_pass_by_ravendbs_rule(self, monkeypatch):
        monkeypatch.setattr(returning, "return_range", ravendbs_return)
        played = Played()
        for line in steps_of("RavenDB's rule"):
            played.play(line)
        assert played.given == [1, 2, 2]

    def test_it_ends_at_the_return_that_arrives_again_by_ours(self):
        played = Played()
        lines = steps_of("RavenDB's rule")
        again = next(line for line in lines if line.startswith("The return"))
        for line in lines[: lines.index(again)]:
            played.play(line)
        with pytest.raises(RangeNotReturned):
            played.play(again)
        assert reservation.reserve("orders", 1).range.low not in played.given


def test_the_trace_of_a_rollback_comes_to_pass(protocol):
    machine, reserved = protocol(), ""
    for line in steps_of("After a rollback"):
        name, verb, *_ = line.split()
        who = "AB".index(name)
        process, model = machine.simulated[who], machine.twins[who]
        number = int((re.findall(r"\d+", line) or [0])[0])
        if verb == "begins":
            machine.begin(who)
        elif verb == "rolls":
            machine.rollback(0)
        elif verb == "uses":
            machine.use(who, 1)
            assert max(model.own) == number
        elif verb in {"keeps", "loses"}:
            with_burnt = [each for each in machine.twins if each.burnt]
            assert model.burnt == {number}
            machine.save_again(with_burnt.index(model))
            assert (number not in model.burnt) == (verb == "keeps")
        else:
            # The next line needs a number, or wants to keep one.
            assert verb == "reserves"
            reserved = line
            continue
        shown = re.search(r"\(Max (\d+), low (\d+)\)", reserved + line)
        reserved = ""
        if shown:
            with process.running():
                row = HiLoDocument.objects.values_list("max", "low").first()
            assert (row or (0, 0)) == (int(shown[1]), int(shown[2])), line
    assert machine.counter.given == {1, 6}


def test_a_return_of_before_a_restore_cannot_lower_max_after_hilo_raise_max():
    mine = reservation.reserve("orders", 3)
    backup = HiLoDocument.objects.values().get()
    returning.return_range("orders", 3, 1, mine.ticket)
    assert reservation.reserve("orders", 2).range.low == 2
    insert_by_sql(2)

    HiLoDocument.objects.update(**backup)
    call_command("hilo_raise_max", "orders", verbosity=0)

    with pytest.raises(RangeNotReturned):
        returning.return_range("orders", 3, 1, mine.ticket)
