"""MariaDB Galera."""

from pathlib import Path

from tests.long.cluster.galera.node import LIBRARIES, Node
from tests.long.cluster.primaries.cluster import DATABASE, Cluster


class Galera(Cluster):
    """Three nodes of MariaDB."""

    kind = Node

    @classmethod
    def missing(cls) -> list[str]:
        has_library = any(map(Path.exists, map(Path, LIBRARIES)))
        return super().missing() + ["libgalera_smm.so"] * (not has_library)

    def start(self) -> None:
        library = next(path for path in LIBRARIES if Path(path).exists())
        first, *others = self.nodes
        for node in self.nodes:
            node.prepare(library, self.nodes, first=node is first)
        first.launch("--wsrep-new-cluster")
        first.wait_for_view_of(1)
        for node in others:
            node.launch()
        self.wait_until_whole()
        for node in self.nodes:
            node.expect_faults()
        first.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
