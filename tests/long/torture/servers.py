"""The database server of a run: its own, since it will be killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.databases import use_pymysql_without_mysqlclient
from tests.support.patience import PATIENCE
from tests.support.ports import free_port

use_pymysql_without_mysqlclient()

_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def missing_programs(*wanted: str) -> list[str]:
    """Return the programs that this machine lacks."""
    path = os.pathsep.join([*map(str, _POSTGRES), os.environ.get("PATH", "")])
    return [name for name in wanted if shutil.which(name, path=path) is None]


class Server(ABC):
    """A server that is started, killed and started again on the same data."""

    system_user: str
    programs: tuple[str, ...]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """What settings name the server with."""

    @abstractmethod
    def install(self) -> None:
        """Make the data of an empty server."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on a new connection, and return its rows."""

    @abstractmethod
    def sessions(self, database: str) -> list[tuple[int, str]]:
        """Return the sessions in a database, each with what it does."""

    @abstractmethod
    def end_session(self, session: int) -> None:
        """End a session, as an administrator would."""

    def create(self) -> None:
        """Make the server of an empty folder, and wait until it answers."""
        self.folder.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.folder, self.system_user, self.system_user)
        self.install()
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        give_up_at = time.monotonic() + PATIENCE
        self._launch()
        while True:
            try:
                self.execute("SELECT 1")
                return
            except Exception:
                if time.monotonic() > give_up_at:
                    raise
            if self._process is not None and self._process.poll() is not None:
                # What a killed server left may take a moment to go.
                self._launch()
            time.sleep(0.1)

    def _launch(self) -> None:
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._as_system_user(), *self._command()],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _as_system_user(self) -> list[str]:
        # It ends with the process that started it, however that ends.
        command = ["setpriv", "--pdeathsig=KILL"]
        if os.getuid() == 0:
            user = self.system_user
            command += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return command

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            [*self._as_system_user(), *command],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Shut the server down; kill it where it does not obey."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()


class Postgres(Server):
    system_user = "postgres"
    programs = ("initdb", "postgres")

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/"

    def install(self) -> None:
        self._run(
            *(
                str(_POSTGRES[-1] / "initdb"),
                "-D",
                f"{self.folder}/data",
                "-U",
                "postgres",
            ),
            *("-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"),
        )

    def _command(self) -> list[str]:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            # The system keeps what a killed server wrote; only a power cut would not.
            "fsync": "off",
            "max_connections": 200,
            "shared_buffers": "64MB",
        }
        command = [str(_POSTGRES[-1] / "postgres"), "-D", f"{self.folder}/data"]
        return command + [f"--{name}={value}" for name, value in options.items()]

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            # Fast: sessions are ended, not waited for.
            self._process.send_signal(2)
        super().stop()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(
            f"{self.url}postgres", autocommit=True, connect_timeout=PATIENCE
        ) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def sessions(self, database: str) -> list[tuple[int, str]]:
        rows = self.execute(
            f"SELECT pid, state || ': ' || query FROM pg_stat_activity "
            f"WHERE datname = '{database}'"
        )
        return [(pid, text) for pid, text in rows]

    def end_session(self, session: int) -> None:
        self.execute(f"SELECT pg_terminate_backend({session})")


class MariaDB(Server):
    system_user = "mysql"
    programs = ("mariadbd", "mariadb-install-db")

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/"

    def install(self) -> None:
        (self.folder / "my.cnf").write_text(f"""[mysqld]
datadir={self.folder}/data
socket={self.folder}/socket
pid-file={self.folder}/pid
log-error={self.folder}/error.log
bind-address=127.0.0.1
port={self.port}
skip-name-resolve
# Written at each commit, and kept by the system when the server is killed.
innodb_flush_log_at_trx_commit=2
innodb_buffer_pool_size=64M
innodb_log_file_size=32M
max_connections=200
performance_schema=OFF
""")
        self._run(
            *("mariadb-install-db", "--no-defaults", "--skip-test-db"),
            *(
                "--auth-root-authentication-method=normal",
                f"--datadir={self.folder}/data",
            ),
        )

    def _command(self) -> list[str]:
        return ["mariadbd", f"--defaults-file={self.folder}/my.cnf"]

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        import MySQLdb

        connection = MySQLdb.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            connect_timeout=PATIENCE,
            read_timeout=PATIENCE,
            autocommit=True,
        )
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def sessions(self, database: str) -> list[tuple[int, str]]:
        rows = self.execute(
            f"SELECT p.id, CONCAT(p.command, ': ', COALESCE(p.info, '')) "
            f"FROM information_schema.processlist p WHERE p.db = '{database}'"
        )
        return [(number, text) for number, text in rows]

    def end_session(self, session: int) -> None:
        import MySQLdb

        with suppress(MySQLdb.OperationalError):  # it has ended
            self.execute(f"KILL CONNECTION {session}")


KINDS: dict[str, type[Server]] = {"postgres": Postgres, "mariadb": MariaDB}
