"""Breaks the product, or a journal, to prove that a run would show it."""

from __future__ import annotations

import os
from pathlib import Path

from django.db.models import QuerySet


def break_product(kind: str) -> None:
    """Take one protection away in this process."""
    from django_hilo import pool, transactions

    def keep_ranges() -> None:
        pool._pool.pid = os.getpid()

    if kind == "fork":
        pool.after_fork_in_child = keep_ranges
    elif kind == "lock":
        QuerySet.select_for_update = lambda self, **kwargs: self  # type: ignore
    elif kind == "bond":
        transactions.Bond.holds = lambda self: True  # type: ignore[method-assign]


def repeat_number(folder: Path) -> None:
    """Let a process note a number that another one has noted."""
    journals = sorted(folder.glob("*-0.log"))
    lines = [line for line in journals[0].open() if " given " in line]
    with journals[-1].open("a") as file:
        file.write(lines[0])
