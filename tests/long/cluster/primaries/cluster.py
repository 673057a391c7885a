"""Three nodes that are one database, and take writes each."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.own_server import Server, missing_programs
from tests.support.ports import free_ports

NODES = 3
DATABASE = "hilo"


class Primary(Server):
    """A node that may be killed, stopped, and started again."""

    # How a session waits for what the other nodes have committed.
    sync: str
    # Codes of a transaction that another node's undid, of a node that takes no writes,
    # and of all that clients meet.
    conflicts: set[str]
    unready: str
    known: set[str]

    def __init__(self, number: int, folder: Path, ports: Sequence[int]) -> None:
        super().__init__(folder / f"n{number + 1}")
        self.tag = "ABC"[number]
        self.ports = ports

    def read(self, *statements: str) -> list[Any]:
        """Run statements when this node has all that the others have committed."""
        rows: list[Any] = self.execute(self.sync, f"USE {DATABASE}", *statements)
        return rows

    def freeze(self) -> None:
        """Stop the process with SIGSTOP: its connections stay open, and silent."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on."""
        self.send(signal.SIGCONT)

    @property
    def size(self) -> int:
        """Return how many nodes this one is working with, itself too; 0 for none."""
        raise NotImplementedError

    def wait_for_view_of(self, nodes: int) -> None:
        """Wait until the node takes part in a cluster of so many."""
        self.wait_for(lambda: self.size == nodes, f"one of {nodes} synced nodes")

    def wait_until_without_quorum(self) -> None:
        """Wait until the node knows that it is not of the cluster's majority."""
        raise NotImplementedError

    def cut_off(self) -> None:
        """Part the node from its peers; its clients still reach it."""
        raise NotImplementedError

    def heal(self) -> None:
        """Let the node join its peers again."""
        raise NotImplementedError

    def bootstrap(self) -> None:
        """Tell a node without quorum that it is the cluster."""
        raise NotImplementedError

    def evict(self, *, late: bool) -> None:
        """Let the node take others for lost late, or as soon as the faults need it."""
        raise NotImplementedError


class Cluster:
    """The nodes, and what makes them whole again."""

    kind: type[Primary]

    def __init__(self, folder: Path) -> None:
        ports = free_ports(NODES * 3)
        self.nodes = [
            self.kind(number, folder, ports[number::NODES]) for number in range(NODES)
        ]

    @classmethod
    def missing(cls) -> list[str]:
        """Return what this machine lacks."""
        return missing_programs("setpriv", *cls.kind.programs)

    def start(self) -> None:
        """Make the nodes of empty folders, and wait until they are one cluster."""
        raise NotImplementedError

    def restart(self) -> None:
        """Start all nodes, none of which runs."""
        for node in self.nodes:
            node.launch()

    def wait_until_whole(self) -> None:
        """Wait until all nodes are synced, and in one view."""
        for node in self.nodes:
            node.wait_for_view_of(NODES)

    def others(self, node: Primary) -> list[Primary]:
        """Return all nodes but one."""
        return [other for other in self.nodes if other is not node]

    def repair(self) -> None:
        """Undo every fault that a test has left."""
        running = [node for node in self.nodes if node.is_running]
        for node in running:
            node.thaw()
            node.heal()
        if not running:
            self.restart()
        elif not any(node.size for node in running):
            running[0].bootstrap()
        for node in self.nodes:
            if not node.is_running:
                node.launch()
        self.wait_until_whole()

    def stop(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            node.stop()


@contextmanager
def in_a_folder(kind: type[Cluster]) -> Iterator[Cluster]:
    """Start a cluster; stop it and remove its folder afterwards."""
    # Not pytest's own folder: that is closed to the system user of the servers, and
    # its name too long for a socket.
    with tempfile.TemporaryDirectory(prefix="hilo-cluster-") as folder:
        Path(folder).chmod(0o755)
        cluster = kind(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
