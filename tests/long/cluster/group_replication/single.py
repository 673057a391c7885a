"""A group whose members elect the one that takes writes."""

from __future__ import annotations

from pathlib import Path

from tests.long.cluster.group_replication.group import PAGE, Group, Member
from tests.long.cluster.primaries.load import environment_on
from tests.long.cluster.route import Route
from tests.support.pages import blocks

TITLE = "Single-primary mode"


class SingleMember(Member):
    """A member that may be the primary."""

    def my_cnf(self) -> str:
        [modes] = blocks(PAGE, TITLE, "ini")
        return f"{super().my_cnf()}\n{modes}"

    def primary_port(self) -> int:
        """Return the port of the primary, as this member sees it; 0: there is none."""
        rows = self.execute(
            "SELECT member_port FROM performance_schema.replication_group_members "
            "WHERE member_role = 'PRIMARY' AND member_state = 'ONLINE'"
        )
        return int(rows[0][0]) if len(rows) == 1 else 0

    def set_primary(self, port: int) -> None:
        """Let the member of a port be the primary."""
        query, change = blocks(PAGE, TITLE, "sql")[0].strip().split(";\n")
        [member] = [row[0] for row in self.execute(query) if int(row[1]) == port]
        before = change.partition("('")[0]
        self.execute(f"{before}('{member}')")


class SinglePrimary(Group):
    """Three members, one of them the primary, and an address that leads to it."""

    kind = SingleMember

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "single")
        (folder / "single").mkdir(mode=0o755)

    def start(self) -> None:
        super().start()
        self.route = Route(self.nodes[0])

    def environment(self, patience: int = 0) -> dict[str, str]:
        """Return that of a Django process, which knows the address alone."""
        # With a tag, it takes only the port of a node, which a route has too.
        return environment_on(self.route, patience, tag="A")  # type: ignore[arg-type]

    def primary(self, among: list[SingleMember]) -> SingleMember:
        """Return the primary when there is one among these members."""
        ports = {node.port: node for node in among}
        among[0].wait_for(lambda: among[0].primary_port() in ports, "led")
        return ports[among[0].primary_port()]

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "route"):
            self.route.close()
