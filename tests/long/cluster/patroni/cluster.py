"""Three nodes under Patroni, its etcd, and an HAProxy that finds the primary."""

from pathlib import Path

from psycopg import Error

from tests.long.cluster.load import environment
from tests.long.cluster.patroni.node import TTL, Etcd, Node
from tests.support.databases import ENGINES
from tests.support.own_server import Server, missing_programs
from tests.support.patience import wait_until
from tests.support.servers import answers

DATABASE = "hilo"
# As the page has it.
RETRY_FOR = 2.0 * TTL
HAPROXY = """\
defaults
    mode tcp
    timeout connect 2s
    timeout check 2s
    timeout client 1h
    timeout server 1h

listen primary
    bind 127.0.0.1:5000
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
    server n1 10.0.0.1:5432 check port 8008
    server n2 10.0.0.2:5432 check port 8008
    server n3 10.0.0.3:5432 check port 8008
"""


class Proxy(Server):
    """HAProxy, which asks Patroni for the primary."""

    system_user = "postgres"
    programs = ("haproxy",)

    def __init__(self, folder: Path, nodes: list[Node]) -> None:
        super().__init__(folder / "proxy")
        self.nodes = nodes

    def install(self) -> None:
        text = HAPROXY
        here = {"127.0.0.1:5000": f"127.0.0.1:{self.port}"}
        for number, node in enumerate(self.nodes, 1):
            there = f"10.0.0.{number}:5432 check port 8008"
            here[there] = f"127.0.0.1:{node.port} check port {node.rest_port}"
        for there, address in here.items():
            assert there in text
            text = text.replace(there, address)
        (self.folder / "haproxy.cfg").write_text(text)

    def command(self) -> list[str]:
        return ["haproxy", "-db", "-f", f"{self.folder}/haproxy.cfg"]

    def answers(self) -> bool:
        assert self.process is not None
        return answers(self.process, self.port)


class Cluster:
    """What a fault may hit, and what makes it whole again."""

    def __init__(self, folder: Path, synchronous: bool) -> None:
        self.synchronous = synchronous
        self.etcd = Etcd(folder)
        self.nodes = [Node(folder, number) for number in (1, 2, 3)]
        self.proxy = Proxy(folder, self.nodes)

    def __repr__(self) -> str:
        return "synchronous" if self.synchronous else "asynchronous"

    @classmethod
    def missing(cls) -> list[str]:
        """Return what this machine lacks."""
        kinds = (Etcd, Node, Proxy)
        programs = (name for kind in kinds for name in kind.programs)
        return missing_programs("setpriv", *programs)

    def start(self) -> None:
        """Start all, and make the database."""
        self.etcd.create()
        first, *others = self.nodes
        for node in self.nodes:
            node.prepare(self.etcd, self.synchronous)
        first.launch()
        first.wait_for(self.primary, "up")
        first.execute(f"CREATE DATABASE {DATABASE}")
        for node in others:
            first.execute(f"CREATE ROLE {node.role} REPLICATION LOGIN")
            node.launch()
        self.wait_until_whole()
        self.proxy.create()

    def stop(self) -> None:
        """Kill all: their data are of no more use."""
        for server in (self.proxy, *self.nodes, self.etcd):
            if server.process is not None:
                server.kill()

    def primary(self) -> Node | None:
        """Return the node that takes writes; None if there is not one alone."""
        primaries = [node for node in self.nodes if node.is_primary()]
        return primaries[0] if len(primaries) == 1 else None

    def leader(self) -> Node:
        """Wait until there is a primary, and return it."""
        node = wait_until(self.primary, self.last_lines)
        assert node is not None
        return node

    def standbys(self) -> list[Node]:
        """Return the nodes that do not lead."""
        leader = self.leader()
        return [node for node in self.nodes if node is not leader]

    def decisive(self) -> list[Node]:
        """Return the standbys of which one is promoted if the primary fails."""
        if not self.synchronous:
            return self.standbys()
        roles = {each["name"]: each["role"] for each in self.leader().members()}
        return [n for n in self.nodes if roles.get(n.name) == "sync_standby"]

    def cut_off(self, standbys: list[Node]) -> None:
        """Let standbys hear nothing from the primary; clients still reach all."""
        leader = self.leader()
        for node in standbys:
            leader.execute(f"ALTER ROLE {node.role} NOLOGIN")
        for node in standbys:
            link = f"pg_stat_replication WHERE usename = '{node.role}'"
            leader.execute(f"SELECT pg_terminate_backend(pid) FROM {link}")
            wait_until(lambda at=link: not leader.execute(f"SELECT 1 FROM {at}"))

    def lose_primary(self) -> None:
        """Kill the primary's node, and wait until another leads."""
        lost = self.leader()
        lost.kill()
        assert self.leader() is not lost

    def waits_for_standby(self) -> bool:
        """Whether a commit waits for a standby."""
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        return bool(self.leader().execute(query))

    def is_whole(self) -> bool:
        """Whether both standbys follow the primary."""
        primary = self.primary()
        if primary is None:
            return False
        # Not those of pg_basebackup.
        others = [node.name for node in self.nodes if node is not primary]
        query = "SELECT application_name AS name FROM pg_stat_replication "
        try:
            rows = primary.execute(f"{query} WHERE state = 'streaming' ORDER BY 1")
        except Error:
            return False
        roles = sorted(each["role"] for each in primary.members())
        second = "sync_standby" if self.synchronous else "replica"
        return [row["name"] for row in rows] == others and roles == sorted(
            ["leader", "replica", second]
        )

    def wait_until_whole(self) -> None:
        """Wait until both standbys follow the primary."""
        wait_until(self.is_whole, self.last_lines)

    def repair(self) -> None:
        """Undo every fault that a test has left."""
        for server in (self.etcd, *self.nodes):
            if not server.is_running:
                server.start()
        leader = self.leader()
        for node in self.nodes:
            leader.execute(f"ALTER ROLE {node.role} LOGIN")
            wait_until(node.resume, self.last_lines)
        self.wait_until_whole()

    def environment(self, by_proxy: bool) -> dict[str, str]:
        """Return that of a Django process that finds the primary by itself."""
        ports = [self.proxy.port] if by_proxy else [node.port for node in self.nodes]
        options = {"connect_timeout": 2, "target_session_attrs": "read-write"}
        return environment(
            {
                "ENGINE": ENGINES["postgres"],
                "NAME": DATABASE,
                "USER": Node.user,
                "HOST": ",".join("127.0.0.1" for _ in ports),
                "PORT": ",".join(map(str, ports)),
                "OPTIONS": options,
            },
            RETRY_FOR=RETRY_FOR,
            SYNCHRONOUS_COMMIT="remote_apply" if self.synchronous else None,
        )

    def last_lines(self) -> str:
        """Return the ends of all logs."""
        servers = (*self.nodes, self.etcd, self.proxy)
        return "\n".join(f"{server}:\n{server.last_lines()}" for server in servers)
