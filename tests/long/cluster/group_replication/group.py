"""MySQL Group Replication, by the commands of docs/how-to/group-replication.md."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from MySQLdb import Error, OperationalError

from tests.long.cluster.primaries.cluster import DATABASE, LOST, Cluster, Primary
from tests.support.own_servers import MySQL
from tests.support.pages import blocks, page
from tests.support.patience import PATIENCE

PAGE = page("how-to/group-replication.md")
# Otherwise it looks for a group for a minute, though there is none.
ALONE = "--loose-group-replication-start-on-boot=OFF"
MEMBERS = (
    "SELECT member_host, member_state FROM performance_schema.replication_group_members"
)
CLONE = (
    "STOP GROUP_REPLICATION",
    "SET GLOBAL group_replication_clone_threshold = 1",
    "START GROUP_REPLICATION",
)
CLONED = "SELECT state, error_message FROM performance_schema.clone_status"


class Member(Primary, MySQL):
    """A server of MySQL that joins its group at each start."""

    sync = "SET SESSION group_replication_consistency = 'BEFORE'"
    conflicts = {"3101", "1180", "1213"}
    unready = "1290"
    empty = {"1049"}
    # Locks; a member that shuts down, takes no writes, is expelled, or leaves at
    # COMMIT; a lost connection.
    known = conflicts | {"1205", "1053", "1290", "3032", "3100"} | LOST

    def prepare(self, addresses: dict[str, str]) -> None:
        """Make the folder; the page's addresses stand for those of this machine."""
        self._addresses = addresses
        [my_cnf] = self._here(*blocks(PAGE, "The members", "ini"))
        self._address = address = f"127.0.0.1:{self.ports[0]}"
        self.options = "\n".join(
            [
                MySQL.options.replace("skip-log-bin", "sync_binlog = 0"),
                my_cnf.removeprefix("[mysqld]\n"),
                # As the page has it for the first of three machines.
                f"server_id = {self.number}\nreport_host = 127.0.0.1",
                f"report_port = {self.port}",
                f"loose_group_replication_local_address = {address}",
                "performance_schema = ON",
                "innodb_lock_wait_timeout = 3600",
            ]
        )
        self.make_folder()
        self.install()

    def _here(self, *texts: str) -> list[str]:
        for there, here in self._addresses.items():
            texts = tuple(text.replace(there, here) for text in texts)
        return list(texts)

    def follow(self, title: str, number: int = 0) -> Any:
        """Enter the statements of one block of a section; return rows of the last."""
        [script] = self._here(blocks(PAGE, title, "sql")[number])
        return self.enter(script)

    def enter(self, script: str) -> Any:
        return self.execute(*script.strip().removesuffix(";").split(";\n"))

    def members(self) -> list[str]:
        """Return the states of the group's members, as this one sees them."""
        try:
            rows = self.execute(MEMBERS)
            return sorted(state for _, state in rows)
        except Error:  # it does not answer
            return []

    def transactions(self) -> int:
        """Return how many transactions the member has, also those not yet applied."""
        [sets] = self.follow("Run-book: all members are down")
        spans = re.findall(r":(\d+)(?:-(\d+))?", " ".join(sets))
        return sum(int(last or first) - int(first) + 1 for first, last in spans)

    @property
    def size(self) -> int:
        states = self.members()
        return len(states) * (set(states) == {"ONLINE"})

    def wait_until_without_quorum(self) -> None:
        self.wait_for(
            lambda: self.members() in (["OFFLINE"], ["ONLINE", *["UNREACHABLE"] * 2]),
            "without quorum",
        )

    def cut_off(self) -> None:
        self.execute("STOP GROUP_REPLICATION")

    def heal(self) -> None:
        if self.members() == ["OFFLINE"]:
            self.execute("START GROUP_REPLICATION")

    def bootstrap(self) -> None:
        self.wait_for(self._is_alone, "the group")

    def _is_alone(self) -> bool:
        [script] = blocks(PAGE, "Run-book: no majority", "sql")
        # Not that of the first member, which the page declares the group.
        script = script.replace("10.0.0.1:33061", self._address)
        with suppress(OperationalError):  # it took too long, but may be done
            self.enter(script)
        return self.size == 1

    def shut_down(self) -> None:
        self.execute("STOP GROUP_REPLICATION", "SHUTDOWN")

    def copy_data(self) -> None:
        self.install()
        self.launch(ALONE)
        self.wait_for(self.answers, "started")
        self.follow("Create the group")
        self.execute(*CLONE)
        assert self.process is not None
        self.process.wait(PATIENCE)  # nothing starts it again, as systemd would
        self.launch()
        self.wait_for(self.answers, "started")
        [status] = self.execute(CLONED)
        assert status[0] == "Completed", status

    def evict(self, *, late: bool) -> None:
        seconds = 3600 if late else 5
        self.execute(f"SET GLOBAL group_replication_member_expel_timeout = {seconds}")


class Group(Cluster):
    """Three members, each a primary."""

    kind = Member

    def start(self) -> None:
        first, *others = self.nodes
        groups = {
            f"10.0.0.{number}:33061": f"127.0.0.1:{node.ports[0]}"
            for number, node in enumerate(self.nodes, 1)
        }
        for node in self.nodes:
            node.prepare(groups)
            node.launch(ALONE)
            node.wait_for(node.answers, "started")
            node.follow("Create the group")
        first.follow("Create the group", 1)
        for node in others:
            node.follow("Create the group", 2)
        self.wait_until_whole()
        first.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")

    def restart(self) -> None:
        for node in self.nodes:
            node.launch(ALONE)
            node.wait_for(node.answers, "started")
        first = max(self.nodes, key=Member.transactions)
        first.follow("Create the group", 1)
        for node in self.others(first):
            node.follow("Create the group", 2)
