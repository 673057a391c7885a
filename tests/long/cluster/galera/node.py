"""One node: a MariaDB server of its own, in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.databases import use_pymysql_without_mysqlclient
from tests.support.patience import PATIENCE

use_pymysql_without_mysqlclient()

import MySQLdb  # noqa: E402 - it may be PyMySQL

SYSTEM_USER = "mysql"
LIBRARIES = (
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib64/galera/libgalera_smm.so",
)

# A node that is silent for four seconds is suspected, after twelve it is evicted.
# Sooner, and a survivor that a busy machine lets stand still while another node dies
# leaves no two that see each other, so that all wait for the dead one ...
EVICTION = {
    "evs.keepalive_period": "PT0.3S",
    "evs.inactive_check_period": "PT0.3S",
    "evs.suspect_timeout": "PT4S",
    "evs.inactive_timeout": "PT12S",
    "evs.install_timeout": "PT6S",
}
# ... where a test is about something else, and while a cluster comes together, after
# these. A node that is evicted while another copies its data may never be synced again.
LATE_EVICTION = {"evs.inactive_timeout": "PT120S", "evs.suspect_timeout": "PT120S"}
_MY_CNF = """\
[mysqld]
datadir={folder}/data
socket={folder}/socket
pid-file={folder}/pid
log-error={folder}/error.log
bind-address=127.0.0.1
port={ports.sql}
skip-name-resolve
binlog_format=ROW
default_storage_engine=InnoDB
innodb_autoinc_lock_mode=2
# A killed process loses nothing so; a power cut would cost up to a second.
innodb_flush_log_at_trx_commit=2
# So that a wait for a lock ends by a limit of the caller's, or not at all.
innodb_lock_wait_timeout=3600
innodb_buffer_pool_size=64M
innodb_log_file_size=32M
performance_schema=OFF
wsrep_on=ON
wsrep_provider={library}
wsrep_provider_options="{options}"
wsrep_cluster_name=hilo
wsrep_cluster_address=gcomm://{peers}
wsrep_node_name={name}
wsrep_node_address=127.0.0.1:{ports.group}
wsrep_sst_method=rsync
wsrep_sst_receive_address=127.0.0.1:{ports.copy}
wsrep_slave_threads=2
"""


class Ports(NamedTuple):
    """What one node listens on."""

    sql: int
    group: int
    changes: int
    copy: int


class Node:
    """A server that may be killed, stopped, cut off, and started again."""

    def __init__(self, number: int, folder: Path, ports: Ports) -> None:
        self.name = f"n{number + 1}"
        self.tag = "ABC"[number]
        self.ports = ports
        self.folder = folder / self.name
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return self.name

    def prepare(self, library: str, peers: Sequence[Node], *, first: bool) -> None:
        """Make the data folder; only the first node's has tables, others copy them."""
        (self.folder / "data").mkdir(parents=True)
        options = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self.ports.group}",
            "ist.recv_addr": f"127.0.0.1:{self.ports.changes}",
            "gcache.size": "32M",
            "gcache.dir": f"{self.folder}/data",
            "pc.recovery": "true",
            **EVICTION,
            **LATE_EVICTION,
        }
        text = _MY_CNF.format(
            folder=self.folder,
            ports=self.ports,
            name=self.name,
            library=library,
            options=";".join(f"{key}={value}" for key, value in options.items()),
            peers=",".join(f"127.0.0.1:{peer.ports.group}" for peer in peers),
        )
        self._my_cnf.write_text(text)
        if first:
            self._install()

    def _install(self) -> None:
        done = subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", "--skip-test-db"),
                "--auth-root-authentication-method=normal",
                f"--datadir={self.folder}/data",
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def _my_cnf(self) -> Path:
        return self.folder / "my.cnf"

    def start(self, *options: str) -> None:
        """Start the server, and do not wait for it."""
        position = self._recovered_position()
        if position:
            options = *options, f"--wsrep-start-position={position}"
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command(), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        # It ends with the process that started it, however that ends.
        command = ["setpriv", "--pdeathsig=KILL"]
        if os.getuid() == 0:
            user = f"--reuid={SYSTEM_USER}", f"--regid={SYSTEM_USER}"
            command += [*user, "--clear-groups"]
        return [*command, "mariadbd", f"--defaults-file={self._my_cnf}"]

    def _recovered_position(self) -> str:
        """Return up to where the node's data go, empty where there are none yet.

        As systemd and mysqld_safe do it: without it, nodes that were killed all at once
        would take each other for equal, whatever they had lost.
        """
        if not (self.folder / "data" / "grastate.dat").exists():
            return ""
        log = self.folder / "recovery.log"
        log.unlink(missing_ok=True)
        command = [*self._command(), "--wsrep-recover", f"--log-error={log}"]
        subprocess.run(command, check=True, timeout=PATIENCE)
        found = re.search(r"WSREP: Recovered position: (\S+)", log.read_text())
        assert found, log.read_text()
        return found[1]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill the server with SIGKILL, as a power cut of the machine would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Shut the server down; kill it where it does not obey."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def freeze(self) -> None:
        """Stop the process with SIGSTOP: its connections stay open, and silent."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def cut_off(self) -> None:
        """Cut the node off from its peers; its clients still reach it."""
        self.execute("SET GLOBAL wsrep_provider_options='gmcast.isolate=1'")

    def heal(self) -> None:
        """Let the node reach its peers again."""
        self.execute("SET GLOBAL wsrep_provider_options='gmcast.isolate=0'")

    def bootstrap(self) -> None:
        """Tell a node without quorum that it is the cluster."""
        self.execute("SET GLOBAL wsrep_provider_options='pc.bootstrap=YES'")

    def evict(self, *, late: bool) -> None:
        """Let the node take others for lost late, or as soon as the faults need it."""
        changed = LATE_EVICTION
        if not late:  # first what is to be the shorter one
            changed = {name: EVICTION[name] for name in reversed(LATE_EVICTION)}
        options = ";".join(f"{name}={value}" for name, value in changed.items())
        self.execute(f"SET GLOBAL wsrep_provider_options='{options}'")

    def expect_faults(self) -> None:
        """Evict others as soon as the faults need it, after each start too."""
        self.evict(late=False)
        text = self._my_cnf.read_text()
        for name, value in LATE_EVICTION.items():
            text = text.replace(f"{name}={value}", f"{name}={EVICTION[name]}")
        self._my_cnf.write_text(text)

    def execute(
        self, *statements: str, patience: int = PATIENCE
    ) -> list[tuple[Any, ...]]:
        """Run statements on one new connection; return the rows of the last."""
        connection = MySQLdb.connect(
            host="127.0.0.1",
            port=self.ports.sql,
            user="root",
            connect_timeout=patience,
            read_timeout=patience,
            autocommit=True,
        )
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def status(self, name: str) -> str:
        """Return a status variable; empty where the server does not answer."""
        try:
            rows = self.execute(f"SHOW STATUS LIKE '{name}'", patience=10)
        except MySQLdb.Error:
            return ""
        return str(rows[0][1]) if rows else ""

    @property
    def is_synced(self) -> bool:
        return (
            self.status("wsrep_local_state_comment") == "Synced"
            and self.status("wsrep_cluster_status") == "Primary"
            and self.status("wsrep_ready") == "ON"
        )

    def wait_for_view_of(self, nodes: int) -> None:
        """Wait until the node takes part in a cluster of so many."""
        self.wait_for(
            lambda: self.is_synced and self.status("wsrep_cluster_size") == str(nodes),
            f"one of {nodes} synced nodes",
        )

    def wait_until_without_quorum(self) -> None:
        """Wait until the node knows that it is not of the cluster's majority."""
        self.wait_for(
            lambda: self.status("wsrep_cluster_status") == "non-Primary",
            "without quorum",
        )

    def wait_until_synced(self) -> None:
        """Wait until the node takes part in the cluster."""
        self.wait_for(lambda: self.is_synced, "synced")

    def wait_for(self, holds: Any, what: str) -> None:
        """Wait until something holds, while the server runs."""
        give_up_at = time.monotonic() + PATIENCE
        while not holds():
            assert self.is_running, f"{self} ended.\n{self._last_lines()}"
            late = f"Not in {PATIENCE} s: {self} is {what}.\n{self._last_lines()}"
            assert time.monotonic() < give_up_at, late
            time.sleep(0.1)

    def _last_lines(self) -> str:
        log = self.folder / "error.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-30:])
