"""Python processes of their own on the database of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.support.patience import PATIENCE


def start(module: str, *arguments: str, database: str) -> subprocess.Popen[str]:
    """Start a module on the database of this name; it is spoken to in lines."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={
            **os.environ,
            "HILO_TEST_NAMES": json.dumps({"default": database}),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(process: subprocess.Popen[str], question: str) -> list[str]:
    """Send a line, and return the words of the answer."""
    assert process.stdin is not None
    process.stdin.write(question + "\n")
    process.stdin.flush()
    return answer(process)


def answer(process: subprocess.Popen[str]) -> list[str]:
    """Return the words of the next line; a process that ended has said nothing."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args} ended with {process.wait()}.")
    return line.split()


def end(*processes: subprocess.Popen[str]) -> None:
    """End processes: they do so when nobody speaks to them any more."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
