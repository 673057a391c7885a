"""What a run does to processes and to the server, and how it is undone."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.long.torture.plan import Fault
from tests.support.own_servers import OwnServer

Start = Callable[[dict[str, Any]], None]


class Faults:
    """Does planned faults, and undoes those that last."""

    def __init__(self, server: OwnServer | None, database: str, start: Start) -> None:
        self.done: Counter[str] = Counter()
        self._server = server
        self._database = database
        self._start = start
        self._stopped: list[tuple[float, int]] = []
        self._first = 0

    def kinds(self) -> list[str]:
        """Return the kinds of faults that this database can have."""
        kinds = ["kill", "terminate", "stop", "stranger", "long_stranger"]
        kinds += ["admin", "kill_web"]
        return [*kinds, "end_sessions", "restart"] if self._server else kinds

    def do(self, fault: Fault, running: Mapping[int, int], web: list[int]) -> None:
        """Do a fault to one of those that run (pids and seats), or to the server."""
        if fault.kind not in self.kinds():
            return
        done = getattr(self, f"_{fault.kind}")(
            running=running, web=web, **fault.arguments
        )
        if done:
            self.done[fault.kind] += 1

    def undo_due(self, *, all: bool = False) -> None:
        """Let stopped processes go on whose time has come."""
        now = time.monotonic()
        for until, pid in list(self._stopped):
            if all or until <= now:
                self._stopped.remove((until, pid))
                _send(pid, signal.SIGCONT)

    def _kill(self, who: float, running: Mapping[int, int], **_: object) -> bool:
        pid = _one_of(running, who)
        return _send(pid, signal.SIGKILL)

    def _terminate(self, who: float, running: Mapping[int, int], **_: object) -> bool:
        pid = _one_of(running, who)
        return _send(pid, signal.SIGTERM)

    def _stop(
        self, who: float, seconds: float, running: Mapping[int, int], **_: object
    ) -> bool:
        pid = _one_of(running, who)
        if pid:
            self._stopped.append((time.monotonic() + seconds, pid))
        return _send(pid, signal.SIGSTOP)

    def _stranger(self, counter: str, seconds: float, **_: object) -> bool:
        self._start({"guest": "hold", "counter": counter, "seconds": seconds})
        return True

    _long_stranger = _stranger

    def _admin(self, by: int, **_: object) -> bool:
        self._start({"guest": "administer", "by": by})
        return True

    def _kill_web(self, signal: str, web: list[int], **_: object) -> bool:
        return bool(web) and _send(web[-1], _SIGNALS[signal])

    def _end_sessions(self, share: float, **_: object) -> bool:
        assert self._server is not None
        sessions = self._server.sessions(self._database)
        chosen = [
            session
            for place, (session, _) in enumerate(sessions)
            if (place + self._first) % 10 < share * 10
        ]
        self._first += 3
        for session in chosen:
            self._server.end_session(session)
        return bool(chosen)

    def _restart(self, seconds: float, **_: object) -> bool:
        assert self._server is not None
        self._server.kill()
        time.sleep(seconds)
        self._server.start()
        return True


_SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM}


def _one_of(running: Mapping[int, int], who: float) -> int:
    pids = sorted(running)
    return pids[min(int(who * len(pids)), len(pids) - 1)] if pids else 0


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number) if pid else None
    except ProcessLookupError:
        return False
    return bool(pid)


def site_pids(folder: Path) -> list[int]:
    """Return the pids of the site's workers, from the names of their journals."""
    started = []
    for path in folder.glob("0000-*.log"):
        pid = int(path.name.split("-")[1])
        with path.open() as lines:
            at, word, _ = next(lines, "0  ").split(" ", 2)
        if word == "web":
            started.append((int(at), pid))
    return [pid for _, pid in sorted(started)]
