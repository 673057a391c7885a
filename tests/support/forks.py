"""Run pieces of code on the example, each in a fork of a process that has it loaded.

A fork starts with what a new process has after ``django.setup()``: no connection, no
range. It ends as one does too, so that ``atexit`` hooks run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from tests.support.patience import PATIENCE


class Forks:
    """The process that forks; its environment is that of all pieces."""

    def __init__(self, folder: Path, cwd: Path, environment: Mapping[str, str]) -> None:
        self._output = folder / "output.txt"
        self._errors = folder / "errors.txt"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.support.forks"],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, database: Path) -> str:
        """Run a piece on an SQLite file and return what it printed."""
        assert self._process.stdin and self._process.stdout
        task = [code, str(database), str(self._output), str(self._errors)]
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        ended_with = self._process.stdout.readline().strip()
        assert ended_with, "The process that forks has ended."
        assert ended_with == "0", f"{ended_with}: {self._errors.read_text()}"
        return self._output.read_text()

    def close(self) -> None:
        """End the process that forks."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE)


def main() -> None:
    import django

    django.setup()
    from django.urls import get_resolver

    assert get_resolver().url_patterns, "the views and the admin are loaded"
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(*json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(code: str, database: str, output: str, errors: str) -> None:
    from django.conf import settings

    _redirect(0, os.devnull, os.O_RDONLY)
    _redirect(1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    _redirect(2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    settings.DATABASES["default"]["NAME"] = database
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def _redirect(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


if __name__ == "__main__":
    main()
