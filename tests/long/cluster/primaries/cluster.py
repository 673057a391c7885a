"""Three nodes that are one database, and take writes each."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.own_server import Server, missing_programs
from tests.support.ports import free_ports

NODES = 3
DATABASE = "hilo"
# Codes of a connection that is lost, or not to be had.
LOST = {"2002", "2003", "2006", "2013"}


class Primary(Server):
    """A node that may be killed, stopped, and started again.

    Its subclasses have a property ``size``, of how many nodes it works with, itself too
    (0: it takes no writes); `wait_until_without_quorum`; `cut_off`, by which clients
    still reach it, and `heal`; `bootstrap`, by which it goes on without the others; and
    `evict`, which lets it take others for lost ``late``, or when faults need it.
    """

    # How a session waits for what the other nodes have committed.
    sync: str
    # Codes of a transaction that another node's undid, of a node that takes no writes,
    # of one that has no tables yet, and of all others that clients meet.
    conflicts: set[str]
    unready: str
    empty: set[str] = set()
    known: set[str]

    def __init__(self, number: int, folder: Path, ports: Sequence[int]) -> None:
        super().__init__(folder / f"{type(self).__name__}{number + 1}")
        self.number = number + 1
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

    def shut_down(self) -> None:
        """Ask the server to end."""
        self.send(signal.SIGTERM)

    def lose_data(self) -> None:
        """Delete the data of the node, which does not run."""
        shutil.rmtree(self.folder / "data")

    def copy_data(self) -> None:
        """Start the node, which has no data, so that it copies another's."""
        raise NotImplementedError

    def wait_for_view_of(self, nodes: int) -> None:
        """Wait until the node takes part in a cluster of so many."""
        self.wait_for(lambda: self.size == nodes, f"one of {nodes} synced nodes")


class Cluster:
    """The nodes, and what makes them whole again.

    `start` makes the nodes of empty folders, and waits until they are one cluster.
    """

    kind: Any

    def __init__(self, folder: Path) -> None:
        ports = free_ports(NODES * 3)
        self.nodes: Any = [
            self.kind(number, folder, ports[number::NODES]) for number in range(NODES)
        ]

    @classmethod
    def missing(cls) -> list[str]:
        """Return what this machine lacks."""
        return missing_programs("setpriv", *cls.kind.programs)

    def restart(self) -> None:
        """Start all nodes, none of which runs."""
        for node in self.nodes:
            node.launch()

    def wait_until_whole(self) -> None:
        """Wait until all nodes are synced, and in one view."""
        for node in self.nodes:
            node.wait_for_view_of(NODES)

    def others(self, node: Primary) -> list[Any]:
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
