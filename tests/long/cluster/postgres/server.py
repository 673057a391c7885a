"""One server of PostgreSQL, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.support.patience import PATIENCE
from tests.support.ports import free_port

SYSTEM_USER = "postgres"
USER = "postgres"
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    # A killed server loses nothing so; a power cut would.
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_wal_senders": "5",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
    "log_min_messages": "warning",
}


class PostgreSQL:
    """A server that may be stopped, killed, copied to a standby, and promoted."""

    def __init__(self, programs: Path, folder: Path, name: str) -> None:
        self.programs = programs
        self.name = name
        self.folder = folder / name
        self.data = self.folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return self.name

    def initialize(self, **options: str) -> None:
        """Make the data folder."""
        self._make_folder()
        self._run("initdb", "-D", self.data, "-U", USER, "-A", "trust", "--no-sync")
        self._configure({**_OPTIONS, **options})

    def copy_of(self, stopped: PostgreSQL) -> None:
        """Make the data folder that another server has, which is not running."""
        assert not stopped.is_running
        self._make_folder()
        subprocess.run(["cp", "-a", stopped.data, self.data], check=True)
        (self.data / "postmaster.opts").unlink(missing_ok=True)

    def standby_of(self, primary: PostgreSQL) -> None:
        """Make the data folder of a standby, whose application_name is its name."""
        self._make_folder()
        self._run(
            *("pg_basebackup", "-D", self.data, "-R", "-X", "stream"),
            *("-c", "fast", "--no-sync"),
            *("-h", "127.0.0.1", "-p", primary.port, "-U", USER),
        )
        self._configure({"primary_conninfo": self._link_to(primary)})

    def _link_to(self, primary: PostgreSQL) -> str:
        return (
            f"host=127.0.0.1 port={primary.port} user={USER} "
            f"application_name={self.name}"
        )

    def _configure(self, options: dict[str, str]) -> None:
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{key} = '{value}'\n" for key, value in options.items())

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    # It ends with the process that started it, however that ends.
                    *("setpriv", "--pdeathsig=KILL", *_as_system_user()),
                    *(str(self.programs / "postgres"), "-D", str(self.data)),
                    *("-p", str(self.port), "-k", str(self.folder)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_for(self.answers, "answering")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def answers(self) -> bool:
        """Whether the server takes queries."""
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, as the end of the machine would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # it makes no more children
        pids = [self._process.pid, *_children(self._process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Shut the server down, whoever is connected."""
        if self._process is None or not self.is_running:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def cut_off(self) -> None:
        """Let the standby hear nothing from its primary; clients still reach both."""
        # A port that nobody listens on.
        self._set("primary_conninfo", "host=127.0.0.1 port=1")
        self.wait_for(lambda: not self._receivers(), "cut off")

    def link_to(self, primary: PostgreSQL) -> None:
        """Let a standby follow a primary."""
        self._set("primary_conninfo", self._link_to(primary))
        self.wait_for(lambda: "streaming" in self._receivers(), "streaming")

    def set(self, name: str, value: str) -> None:
        """Change a setting that a reload is enough for, and wait until it holds."""
        self._set(name, value)
        self.wait_for(
            lambda: self.execute(f"SHOW {name}") == [{name: value}], f"at {value!r}"
        )

    def _set(self, name: str, value: str) -> None:
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def _receivers(self) -> list[str]:
        return [row["status"] for row in self.execute("TABLE pg_stat_wal_receiver")]

    def promote(self) -> None:
        """Make the standby a primary, and wait until it is one."""
        self.execute("SELECT pg_promote()")

    def wait_until_applied_by(self, standby: PostgreSQL) -> None:
        """Wait until a standby has applied all that is committed here now."""
        [row] = self.execute("SELECT pg_current_wal_lsn() AS now")
        query = f"SELECT pg_last_wal_replay_lsn() >= '{row['now']}' AS done"
        standby.wait_for(lambda: standby.execute(query)[0]["done"], "up to date")

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement on a connection of its own; return rows as dicts."""
        with (
            psycopg.connect(
                host="127.0.0.1",
                port=self.port,
                user=USER,
                dbname=database,
                autocommit=True,
                connect_timeout=PATIENCE,
                row_factory=dict_row,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def wait_for(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds, while the server runs."""
        give_up_at = time.monotonic() + PATIENCE
        while not holds():
            assert self.is_running, f"{self} ended.\n{self.last_lines()}"
            late = f"{self} is not {what} after {PATIENCE:g} s.\n{self.last_lines()}"
            assert time.monotonic() < give_up_at, late
            time.sleep(0.05)

    def last_lines(self) -> str:
        """Return the end of the server's log."""
        log = self.folder / "log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-30:])

    def _make_folder(self) -> None:
        self.folder.mkdir()
        if os.getuid() == 0:
            owner = f"{SYSTEM_USER}:{SYSTEM_USER}"
            subprocess.run(["chown", owner, self.folder], check=True)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        as_user = _as_system_user()
        done = subprocess.run(
            ["setpriv", *as_user, *command] if as_user else command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _as_system_user() -> Sequence[str]:
    # PostgreSQL never runs as root.
    if os.getuid() != 0:
        return ()
    return f"--reuid={SYSTEM_USER}", f"--regid={SYSTEM_USER}", "--clear-groups"


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # Its parent comes second after the name, which may be any text.
            _, parent, *_ = status.read_text().rpartition(")")[2].split()
            if int(parent) == pid:
                found.append(int(status.parent.name))
    return found
