"""Transactions in transactions, each with an end of its own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from django.db import connection, transaction

from tests.long.torture.errors import EXPECTED, Doomed, Undo, expect
from tests.long.torture.lost import open_block, shut_block
from tests.long.torture.notes import note
from tests.long.torture.plan import Step
from tests.support.sql import execute

Body = Callable[[Step], None]


def run_transaction(step: Step, do: Body) -> None:
    """Run a planned transaction; expected errors are noted and end it."""
    note("step", f"transaction, {step.arguments['end']}")
    open_block()
    outcome = "undone"
    try:
        with transaction.atomic(durable=bool(step.arguments["durable"])):
            _do_all(step, do)
            end = str(step.arguments["end"])
            _end(end)
            # From here on only the database knows.
            outcome = "unknown" if end == "keep" else "undone"
        if end == "keep":
            outcome = "kept"
    except Undo:
        pass
    except EXPECTED as error:
        expect(error)
    finally:
        shut_block(outcome)
    note("did", f"transaction, {step.arguments['end']}")


def run_block(step: Step, do: Body) -> None:
    """Run a planned block inside a transaction; errors pass through."""
    note("step", f"block, {step.arguments['end']}")
    open_block()
    outcome = "undone"
    try:
        with suppress(Undo), _BLOCKS[str(step.arguments["end"])]():
            _do_all(step, do)
            outcome = "kept" if step.arguments["end"] in _KEPT else "undone"
    except BaseException:
        outcome = "undone"
        raise
    finally:
        shut_block(outcome)
    note("did", f"block, {step.arguments['end']}")


@contextmanager
def _noted(before: str, around: AbstractContextManager[object]) -> Iterator[None]:
    open_block()
    outcome = before
    try:
        with around:
            yield
        outcome = "kept"
    finally:
        shut_block(outcome)


def alone() -> AbstractContextManager[None]:
    """Do what is a transaction by itself, where none is open."""
    return _noted("unknown", nullcontext())


def guarded() -> AbstractContextManager[None]:
    """Put a savepoint around rows, so that the transaction survives their errors."""
    return _noted("undone", transaction.atomic())


def _do_all(step: Step, do: Body) -> None:
    for inner in step.body:
        do(inner)
        if connection.needs_rollback:
            # Django tells nobody at the end: it rolls back, and raises nothing.
            raise Doomed("A savepoint was lost.")


def _end(kind: str) -> None:
    if kind == "raise":
        raise Undo
    if kind == "set_rollback":
        transaction.set_rollback(True)
    elif kind == "raw_rollback":
        execute("ROLLBACK")
    elif kind == "close":
        connection.close()


@contextmanager
def _rolled_back_by_exception() -> Iterator[None]:
    with transaction.atomic():
        yield
        raise Undo


@contextmanager
def _set_to_roll_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def _savepoint_rolled_back() -> Iterator[None]:
    savepoint = transaction.savepoint()
    yield
    transaction.savepoint_rollback(savepoint)


@contextmanager
def _savepoint_committed() -> Iterator[None]:
    savepoint = transaction.savepoint()
    yield
    transaction.savepoint_commit(savepoint)


@contextmanager
def _rolled_back_by_sql() -> Iterator[None]:
    # The same name in each level: the newest one is meant.
    execute("SAVEPOINT mine")
    yield
    execute("ROLLBACK TO SAVEPOINT mine")
    execute("RELEASE SAVEPOINT mine")


@contextmanager
def _released_by_sql() -> Iterator[None]:
    execute("SAVEPOINT ours")
    yield
    execute("RELEASE SAVEPOINT ours")


_BLOCKS = {
    "keep": transaction.atomic,
    "raise": _rolled_back_by_exception,
    "set_rollback": _set_to_roll_back,
    "savepoint_rollback": _savepoint_rolled_back,
    "savepoint_commit": _savepoint_committed,
    "raw_rollback_to": _rolled_back_by_sql,
    "raw_release": _released_by_sql,
    "without_savepoint": lambda: transaction.atomic(savepoint=False),
}
_KEPT = {"keep", "savepoint_commit", "raw_release", "without_savepoint"}
