"""A server of the site, as its operators start and stop it."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from itertools import cycle, islice
from pathlib import Path

from tests.long.hosting.journal import Answer, Journal
from tests.support.commands import PROJECT
from tests.support.patience import PATIENCE, wait_until
from tests.support.ports import free_port
from tests.support.servers import PATIENT_GUNICORN, ending_with_us

SYNC = ("create", "create-in-atomic", "roll-back", "create")
ASYNC = ("acreate", "anext", "create-in-atomic", "roll-back")
CLIENTS = 8


class Server:
    """A process that listens on a free port; PORT in its command stands for that."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self.port = free_port()
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                # A shell's background job ignores Ctrl-C, and so would its children.
                ending_with_us(
                    *("env", "--default-signal=INT,QUIT"),
                    *(part.replace("PORT", str(self.port)) for part in command),
                ),
                cwd=PROJECT,
                env={**environment, **PATIENT_GUNICORN},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.journal = Journal()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_until_up(self) -> int:
        """Return the id of the process that answers first."""
        return wait_until(self._first_answer, lambda: self.log)

    def _first_answer(self) -> int:
        try:
            return self.fetch("without-database")["process"]
        except (OSError, HTTPException, json.JSONDecodeError):
            assert self.process.poll() is None, self.log
            return 0  # it is still starting, or ends in the midst of its answer

    def fetch(self, path: str) -> dict:
        url = f"http://127.0.0.1:{self.port}/{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            return json.load(page)

    def ask(self, count: int, paths: Sequence[str] = SYNC) -> None:
        """Ask for so many objects, from several clients at once; note the answers."""
        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = clients.map(self.fetch, islice(cycle(paths), count))
            self.journal += [Answer(**answer) for answer in answers]

    def ask_until_processes_overlap(
        self, count: int, paths: Sequence[str] = SYNC
    ) -> None:
        """Ask at least so many times, and on until two have worked at once."""
        self.ask(count, paths)
        self.ask_until(self.journal.overlapped, CLIENTS * len(paths), paths)

    def ask_until(
        self, done: Callable[[], bool], count: int, paths: Sequence[str] = SYNC
    ) -> None:
        """Ask again and again for so many objects, until the journal has enough."""
        give_up = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < give_up, f"only {self.journal.processes} answered"
            self.ask(count, paths)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal to the process, and return what it ended with."""
        self.process.send_signal(how)
        return self.process.wait(2 * PATIENCE)

    def stop_all(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send it to the children too, as systemd does, and a terminal's Ctrl-C."""
        os.killpg(self.process.pid, how)
        return self.process.wait(2 * PATIENCE)

    def kill(self) -> None:
        """End what is left of it and of its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
