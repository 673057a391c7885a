"""A replica that is promoted, and two masters with one node tag: both are told."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.long.interop.peers import require
from tests.long.torture.servers import MariaDB, missing_programs
from tests.support.patience import LONGEST, PATIENCE, wait_until

# As the settings of the cluster's processes have it, which these share.
DATABASE = "hilo"
COUNTERS = f"SELECT id, max, raised_by FROM {DATABASE}.django_hilo_hilodocument"
SAVE = """
import django, logging
django.setup()
logging.basicConfig(format="warned: %(message)s", level="WARNING")
from tests.apps.records.models import Order
for _ in range(10):
    print(Order.objects.create().pk)
"""


class Site(MariaDB):
    """A server that writes down its changes, for the other to read."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(folder)
        self.number = number

    def _command(self) -> list[str]:
        return [
            *super()._command(),
            f"--server-id={self.number}",
            f"--gtid-domain-id={self.number}",
            "--log-bin",
            "--log-slave-updates",
        ]

    def follow(self, other: Site) -> None:
        """Read the changes of another, from its first on."""
        self.execute(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={other.port}, "
            f"MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos"
        )
        self.execute("START SLAVE")

    def wait_for(self, other: Site) -> None:
        """Wait until this has the counters that the other has."""
        wait_until(lambda: self.counters() == other.counters(), self.status)

    def counters(self) -> list[tuple[str, int, str]]:
        found = self.execute("SHOW TABLES IN hilo LIKE 'django_hilo_hilodocument'")
        return self.execute(COUNTERS) if found else []

    def status(self) -> str:
        return str(self.execute("SHOW SLAVE STATUS"))

    def save(self) -> tuple[list[str], list[str]]:
        """Let a process save ten orders; return their ids, and what it logged."""
        done = self.python("-c", SAVE)
        assert done.returncode == 0, done.stderr
        warned = [line for line in done.stderr.splitlines() if "warned: " in line]
        return done.stdout.split(), warned

    def manage(self, *command: str) -> str:
        done = self.python("-m", "django", *command)
        return done.stdout + done.stderr

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.long.cluster.galera.settings",
                "HILO_GALERA_PORT": str(self.port),
                "HILO_GALERA_TAG": "A",
                "HILO_GALERA_PATIENCE": str(PATIENCE),
            },
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )


@pytest.fixture
def sites() -> Iterator[tuple[Site, Site]]:
    """Two servers; the second is a replica of the first, which has orders 1 to 10."""
    lacks = missing_programs(*Site.programs)
    if lacks:
        require(f"no pair of MariaDB servers without {', '.join(lacks)}")
    with tempfile.TemporaryDirectory(prefix="hilo-pair-") as folder:
        Path(folder).chmod(0o755)
        first, second = (Site(Path(folder) / f"s{number}", number) for number in (7, 8))
        try:
            for site in (first, second):
                site.create()
            second.follow(first)
            first.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
            first.manage("migrate", "--run-syncdb", "--verbosity=0")
            ids, warned = first.save()
            assert (ids[0], ids[-1], warned) == ("orders/1-A", "orders/10-A", [])
            assert [row[2] for row in first.counters()] == ["server_id 7"]
            second.wait_for(first)
            yield first, second
        finally:
            first.stop()
            second.stop()


def test_a_replica_that_was_promoted_is_told_until_max_was_raised(sites):
    first, second = sites
    second.execute("SET GLOBAL read_only = 1")
    assert "W026" not in second.manage("check", "--deploy", "--database=default")
    first.kill()
    second.execute("STOP SLAVE")
    second.execute("RESET SLAVE ALL")
    second.execute("SET GLOBAL read_only = 0")

    said = second.manage("check", "--deploy", "--database=default")
    assert "W026" in said
    assert "the server server_id 8, 1 counters were last raised" in said
    _, [warned] = second.save()
    assert "raised by the server 'server_id 7' before" in warned

    second.manage("hilo_raise_max", "--database=default")
    assert "W026" not in second.manage("check", "--deploy", "--database=default")
    assert second.save()[1] == []


def test_one_node_tag_on_two_masters_is_told(sites):
    first, second = sites
    first.follow(second)
    said = second.manage("check", "--deploy", "--database=default")
    assert "W026" in said
    assert "two sites have the node tag 'A'" in said
    ids, warned = second.save()
    assert len(warned) == 1, warned
    first.wait_for(second)
    assert "W026" in first.manage("check", "--deploy", "--database=default")
    more, warned = first.save()
    assert len(warned) == 1, warned
    assert not set(ids) & set(more)
