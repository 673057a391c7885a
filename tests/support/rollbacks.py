"""Transactions that bind the ranges that are reserved in them, and that roll back."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import transaction

from django_hilo.models import HiLoDocument
from tests.support.databases import CHOSEN


class Undo(Exception):
    pass


def bind() -> None:
    """Bind ranges to the open transaction: it locks a counter, as loaddata does."""
    if CHOSEN != "sqlite":
        HiLoDocument(collection="locked-by-loaddata").save_base(raw=True)


@contextmanager
def rolled_back() -> Iterator[None]:
    """Roll back what the block does; its ranges are bound."""
    with suppress(Undo), transaction.atomic():
        bind()
        yield
        raise Undo


def create_elsewhere(python, model="Order"):
    """Let another process create an object named "other"."""
    python(
        f"from tests.apps.numbers.models import *\n{model}.objects.create(name='other')"
    )
