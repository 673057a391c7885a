"""Programs of others, or of ours, that a test starts beside itself."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.commands import PROJECT
from tests.support.patience import LONGEST, PATIENCE


def require(sentence: str) -> NoReturn:
    """Skip for the reason given; with HILO_TEST_REQUIRE=1, fail for it."""
    if os.environ.get("HILO_TEST_REQUIRE") == "1":
        pytest.fail(f"{sentence}, and HILO_TEST_REQUIRE=1")
    pytest.skip(sentence)


class Program:
    """A process that answers a line with a line, and keeps its memory in between."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        errors: Path | None = None,
        folder: Path = PROJECT,
        start: Callable[..., Any] = subprocess.Popen,
    ) -> None:
        self.errors = errors
        with errors.open("a") if errors else nullcontext() as output:
            self.process = start(
                command,
                cwd=folder,
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
        line = ""
        while self.unread:
            line = self.read()
            self.unread -= 1
        return line

    def ask(self, line: str) -> str:
        """Send a line, and return the answer."""
        self.send(line)
        return self.receive()

    def read(self) -> str:
        """Return the next line; a process that ended has said nothing."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(LONGEST, self.process.kill)
        watchdog.start()
        try:
            line = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        said = self.errors.read_text() if self.errors and not line else ""
        assert line, f"It ended with {self.process.wait(PATIENCE)}. {said}"
        return line.rstrip("\n")

    def stop(self) -> None:
        """Let it end as processes do, as nobody speaks to it any more."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        self.process.stdout.close()

    def end(self) -> None:
        """Kill it, before it can return anything."""
        self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # a line that it had not read
                stream.close()


@contextmanager
def programs(make: type[Any]) -> Iterator[Any]:
    """Start programs by calling it as their class; all end with the block."""
    started: list[Program] = []

    def start(*arguments: Any) -> Any:
        started.append(make(*arguments))
        return started[-1]

    try:
        yield start
    finally:
        for program in started:
            program.end()
