"""Runs Debian's Spin on the model."""

import re
import shutil
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from tests.support.commands import run
from tests.support.programs import require

MODEL = Path(__file__).parent / "hilo.pml"
# Seconds; only there so that nothing hangs.
LONGEST = 3600
# What a search that left something out says of it.
_INCOMPLETE = ("max search depth too small", "not completed", "out of memory", "MEMLIM")


class Search(NamedTuple):
    """What Spin says of a search."""

    errors: int
    states: int
    depth: int
    seconds: float
    unreached: list[str]
    report: str

    @property
    def is_complete(self) -> bool:
        """Whether every state was looked at, within the bounds of the model."""
        return not any(words in self.report for words in _INCOMPLETE)

    def __str__(self) -> str:
        return (
            f"{self.states:,} states, {self.depth} steps deep, {self.seconds:.1f} s, "
            f"{self.errors} errors"
        )


def require_spin() -> None:
    """Skip where Spin or a C compiler is missing; with HILO_TEST_REQUIRE=1, fail."""
    missing = [name for name in ("spin", "gcc", "cpp") if not shutil.which(name)]
    if missing:
        require(f"{' and '.join(missing)} missing. Debian: apt install spin gcc")


def search(folder: Path, switches: Sequence[str], optimize: str = "-O1") -> Search:
    """Look at every state of the model, until the first error."""
    # Steps are whole transactions already: there is nothing for Spin to reduce.
    _build(folder, switches, [optimize, "-DSAFETY", "-DNOREDUCE"])
    return _read(_run(folder, "./pan", "-m5000000", "-w23"))


def shortest_trace(folder: Path, switches: Sequence[str]) -> list[str]:
    """Return what the model tells on the shortest way to an error; none: no lines."""
    _build(folder, switches, ["-O0", "-DSAFETY", "-DNOREDUCE", "-DBFS"])
    found = _read(_run(folder, "./pan", "-w22"))
    assert found.is_complete or found.errors, found.report
    if not found.errors:
        return []
    told = _run(
        folder, "spin", *_as_options(switches), "-k", _TRAIL, "-t", "-T", MODEL.name
    )
    lines = told.splitlines()
    # The trail may be of the second in which the model was copied.
    lines = [line for line in lines if not line.startswith("spin: warning")]
    return list(takewhile(lambda line: not line.startswith("spin: "), lines))


_TRAIL = f"{MODEL.name}.trail"


def _build(folder: Path, switches: Sequence[str], compiler: Sequence[str]) -> None:
    shutil.copy(MODEL, folder)
    (folder / _TRAIL).unlink(missing_ok=True)
    _run(folder, "spin", *_as_options(switches), "-a", MODEL.name)
    _run(folder, "gcc", "-w", *compiler, "-o", "pan", "pan.c")


def _as_options(switches: Sequence[str]) -> list[str]:
    return [f"-D{switch}" for switch in switches]


def _run(folder: Path, *command: str) -> str:
    return run(*command, cwd=folder, timeout=LONGEST).stdout


def _read(report: str) -> Search:
    def number(pattern: str) -> float:
        found = re.search(pattern, report)
        assert found, f"no {pattern!r} in: {report}"
        return float(found[1])

    return Search(
        errors=int(number(r"errors: (\d+)")),
        states=int(number(r"(\S+) states, stored")),
        depth=int(number(r"depth reached (\d+)")),
        seconds=number(r"elapsed time (\S+) seconds"),
        unreached=re.findall(r"hilo\.pml:\d+, state \d+, (.*)", report),
        report=report,
    )
