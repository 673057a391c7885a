"""One node: a MariaDB server of its own, in a folder of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.long.cluster.primaries.cluster import LOST, Primary
from tests.support.own_servers import MariaDB

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
binlog_format=ROW
default_storage_engine=InnoDB
innodb_autoinc_lock_mode=2
# So that a wait for a lock ends by a limit of the caller's, or not at all.
innodb_lock_wait_timeout=3600
wsrep_on=ON
wsrep_provider={library}
wsrep_provider_options="{options}"
wsrep_cluster_name=hilo
wsrep_cluster_address=gcomm://{peers}
wsrep_node_name={name}
wsrep_node_address=127.0.0.1:{group}
wsrep_sst_method=rsync
wsrep_sst_receive_address=127.0.0.1:{copy}
wsrep_slave_threads=2
"""


class Node(Primary, MariaDB):
    """A server that may be cut off, too."""

    programs = (*MariaDB.programs, "rsync", "lsof")
    sync = "SET SESSION wsrep_sync_wait = 1"
    conflicts = {"1213"}
    unready = "1047"
    # Deadlocks, also those with other nodes; locks; a node that shuts down, is not
    # ready, or loses its quorum; a lost connection.
    known = {"1213", "1205", "1053", "1047", "1180"} | LOST

    def prepare(self, library: str, peers: Sequence[Node], *, first: bool) -> None:
        """Make the folder; only the first node's has tables, others copy them."""
        self.make_folder()
        group, changes, copy = self.ports
        options = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{group}",
            "ist.recv_addr": f"127.0.0.1:{changes}",
            "gcache.size": "32M",
            "gcache.dir": f"{self.folder}/data",
            "pc.recovery": "true",
            **EVICTION,
            **LATE_EVICTION,
        }
        self._galera = _MY_CNF.format(
            group=group,
            copy=copy,
            name=self,
            library=library,
            options=";".join(f"{key}={value}" for key, value in options.items()),
            peers=",".join(f"127.0.0.1:{peer.ports[0]}" for peer in peers),
        )
        if first:
            self.install()
        else:
            self.configure()
            self._make_data_folder()

    def _make_data_folder(self) -> None:
        self.run("mkdir", self.folder / "data")

    def copy_data(self) -> None:
        self._make_data_folder()
        self.launch()

    def my_cnf(self) -> str:
        return super().my_cnf() + self._galera

    def launch(self, *options: str) -> None:
        position = self._recovered_position()
        if position:
            options = *options, f"--wsrep-start-position={position}"
        super().launch(*options)

    def _recovered_position(self) -> str:
        """Return up to where the node's data go, empty where there are none yet.

        As systemd and mysqld_safe do it: without it, nodes that were killed all at once
        would take each other for equal, whatever they had lost.
        """
        if not (self.folder / "data" / "grastate.dat").exists():
            return ""
        log = self.folder / "recovery.log"
        log.unlink(missing_ok=True)
        self.run(*self.command(), "--wsrep-recover", f"--log-error={log}")
        found = re.search(r"WSREP: Recovered position: (\S+)", log.read_text())
        assert found, log.read_text()
        return found[1]

    def cut_off(self) -> None:
        self.execute("SET GLOBAL wsrep_provider_options='gmcast.isolate=1'")

    def heal(self) -> None:
        self.execute("SET GLOBAL wsrep_provider_options='gmcast.isolate=0'")

    def bootstrap(self) -> None:
        self.execute("SET GLOBAL wsrep_provider_options='pc.bootstrap=YES'")

    def evict(self, *, late: bool) -> None:
        changed = LATE_EVICTION
        if not late:  # first what is to be the shorter one
            changed = {name: EVICTION[name] for name in reversed(LATE_EVICTION)}
        options = ";".join(f"{name}={value}" for name, value in changed.items())
        self.execute(f"SET GLOBAL wsrep_provider_options='{options}'")

    def expect_faults(self) -> None:
        """Evict others as soon as the faults need it, after each start too."""
        self.evict(late=False)
        for name, value in LATE_EVICTION.items():
            self._galera = self._galera.replace(
                f"{name}={value}", f"{name}={EVICTION[name]}"
            )
        self.configure()

    def status(self, name: str) -> str:
        """Return a status variable; empty where the server does not answer."""
        import MySQLdb

        try:
            rows = self.execute(f"SHOW STATUS LIKE '{name}'", patience=10)
        except MySQLdb.Error:
            return ""
        return str(rows[0][1]) if rows else ""

    @property
    def size(self) -> int:
        is_synced = (
            self.status("wsrep_local_state_comment") == "Synced"
            and self.status("wsrep_cluster_status") == "Primary"
            and self.status("wsrep_ready") == "ON"
        )
        return int(self.status("wsrep_cluster_size") or 0) if is_synced else 0

    def wait_until_without_quorum(self) -> None:
        self.wait_for(
            lambda: self.status("wsrep_cluster_status") == "non-Primary",
            "without quorum",
        )
