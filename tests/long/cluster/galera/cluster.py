"""Three nodes that are one database."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.long.cluster.galera.node import DATABASE, LIBRARIES, Node, Ports
from tests.support.ports import free_ports

NODES = 3
PROGRAMS = ("mariadbd", "mariadb-install-db", "rsync", "lsof", "setpriv")


def missing() -> list[str]:
    """Return what this machine lacks for a cluster."""
    lacks = [program for program in PROGRAMS if shutil.which(program) is None]
    if not any(map(Path.exists, map(Path, LIBRARIES))):
        lacks.append("libgalera_smm.so")
    return lacks


class Cluster:
    """The nodes, and what makes them whole again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ports = free_ports(NODES * len(Ports._fields))
        self.nodes = [
            Node(number, folder, Ports(*ports[number::NODES]))
            for number in range(NODES)
        ]

    def start(self) -> None:
        """Make the nodes of empty folders, and wait until they are one cluster."""
        library = next(path for path in LIBRARIES if Path(path).exists())
        first, *others = self.nodes
        for node in self.nodes:
            node.prepare(library, self.nodes, first=node is first)
        first.start("--wsrep-new-cluster")
        first.wait_until_synced()
        for node in others:
            node.start()
        self.wait_until_whole()
        for node in self.nodes:
            node.expect_faults()
        first.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")

    def wait_until_whole(self) -> None:
        """Wait until all nodes are synced, and in one view."""
        for node in self.nodes:
            node.wait_for_view_of(NODES)

    def others(self, node: Node) -> list[Node]:
        """Return all nodes but one."""
        return [other for other in self.nodes if other is not node]

    def repair(self) -> None:
        """Undo every fault that a test has left."""
        running = [node for node in self.nodes if node.is_running]
        for node in running:
            node.thaw()
            node.heal()
        if running and not any(node.is_synced for node in running):
            running[0].bootstrap()
        for node in self.nodes:
            if not node.is_running:
                node.start()
        self.wait_until_whole()

    def stop(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            if node.is_running:
                node.stop()


@contextmanager
def cluster_in_a_folder() -> Iterator[Cluster]:
    """Start a cluster; stop it and remove its folder afterwards."""
    # Not pytest's own folder: that is closed to the system user of the servers, and
    # its name too long for a socket.
    with tempfile.TemporaryDirectory(prefix="hilo-galera-") as folder:
        Path(folder).chmod(0o755)
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
