from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

from django.core.management.base import OutputWrapper
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Table

from example_project.shop.loading import Advance, Figures


class Output(io.TextIOBase):
    """A command's stdout as rich wants it: nothing is added to what is written."""

    def __init__(self, stdout: OutputWrapper) -> None:
        self._stdout = stdout

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stdout, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        self._stdout.write(text, ending="")
        return len(text)

    def flush(self) -> None:
        self._stdout.flush()

    def isatty(self) -> bool:
        return self._stdout.isatty()


def console_for(stdout: OutputWrapper, options: dict[str, Any]) -> Console:
    """Return a console that writes to a command's stdout; silent on verbosity 0."""
    terminal = stdout.isatty()
    return Console(
        file=cast("IO[str]", Output(stdout)),
        quiet=options["verbosity"] == 0,
        # Not left to rich, which takes a pipe for a terminal when FORCE_COLOR is set.
        force_terminal=terminal,
        no_color=True if options["no_color"] else None,
        width=None if terminal else 140,
        highlight=False,
        markup=False,
    )


@contextmanager
def progress_bar(console: Console, total: int) -> Iterator[Advance]:
    """Show a bar of all rows while the block runs; nothing without a terminal."""
    if console.quiet or not console.is_terminal:
        yield lambda what, rows: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, Elapsed(), console=console, transient=True) as progress:
        task = progress.add_task("giving ids", total=total)
        yield lambda what, rows: progress.update(task, description=what, advance=rows)


def print_figures(console: Console, title: str, figures: Sequence[Figures]) -> None:
    """Print the table of what was loaded, with the sums last, and then the ids."""
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN,
        show_footer=True,
    )
    table.add_column("Model", "Total")
    for header, total in [
        ("Rows", f"{sum(row.rows for row in figures):,}"),
        ("Statements", f"{sum(row.statements for row in figures):,}"),
        ("Reservations", f"{sum(row.reservations for row in figures):,}"),
        ("Seconds", f"{sum(row.seconds for row in figures):.2f}"),
    ]:
        table.add_column(header, total, justify="right")
    for row in figures:
        table.add_row(
            str(row.model._meta.verbose_name_plural).capitalize(),
            f"{row.rows:,}",
            f"{row.statements:,}",
            f"{row.reservations:,}",
            f"{row.seconds:.2f}",
        )
    console.print(f"{title}:")
    console.print(table)
    # Not in the table: two ids of a line would be cut at 80 columns.
    for row in figures:
        console.print(f"{row.first_id} to {row.last_id}", soft_wrap=True)
