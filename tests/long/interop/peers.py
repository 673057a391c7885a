"""Programs of others, or of ours, that a test starts beside itself."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.patience import LONGEST


def require(sentence: str) -> NoReturn:
    """Skip for the reason given; with HILO_TEST_REQUIRE=1, fail for it."""
    if os.environ.get("HILO_TEST_REQUIRE") == "1":
        pytest.fail(f"{sentence}, and HILO_TEST_REQUIRE=1")
    pytest.skip(sentence)


class Program:
    """A process that answers a line with a line."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], errors: Path
    ) -> None:
        self.errors = errors
        with errors.open("a") as output:
            self.process = subprocess.Popen(
                command,
                cwd=Path(__file__).parent,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self.unread = 0

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        self.unread += 1

    def receive(self) -> str:
        """Return the answer to what was sent last."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(LONGEST, self.process.kill)
        watchdog.start()
        line = ""
        try:
            while self.unread:
                line = self.process.stdout.readline()
                assert line, self.errors.read_text()
                self.unread -= 1
        finally:
            watchdog.cancel()
        return line.rstrip("\n")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
