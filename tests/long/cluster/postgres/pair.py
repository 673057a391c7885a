"""Two sites: servers that replicate their rows to each other, and both write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.long.cluster.load import migrate
from tests.long.cluster.postgres.server import PostgreSQL, environment_on

TEMPLATE = "hilo_template"


class Pair:
    """Servers A and B, and the databases that they have in common."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.a = PostgreSQL(programs, folder, "a")
        self.b = PostgreSQL(programs, folder, "b")
        self.sites = (self.a, self.b)

    def start(self) -> None:
        """Make both servers, each with a database that has all tables."""
        for site in self.sites:
            site.initialize(wal_level="logical", track_commit_timestamp="on")
            site.start()
            site.execute(f"CREATE DATABASE {TEMPLATE}")
            migrate(environment_on([site], TEMPLATE, "A"))

    def stop(self) -> None:
        for site in self.sites:
            site.stop()

    @contextmanager
    def database(self, name: str, template: str = TEMPLATE) -> Iterator[Shared]:
        """Make a database on both sites; drop it afterwards."""
        for site in self.sites:
            site.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        shared = Shared(self, name)
        try:
            yield shared
        finally:
            shared.drop()


class Shared:
    """A database of both sites."""

    def __init__(self, pair: Pair, name: str) -> None:
        self.pair = pair
        self.name = name
        # A slot's name is the server's, not the database's.
        self.subscriptions = {site: f"{name}_to_{site.name}" for site in pair.sites}

    def __call__(self, site: PostgreSQL, statement: str) -> list[Any]:
        """Run a statement on one site; return rows as dicts."""
        return site.execute(statement, database=self.name)

    def replicate(self, what: str) -> None:
        """Let each site publish what is named, and subscribe to the other's."""
        for site in self.pair.sites:
            self(site, f"CREATE PUBLICATION shop FOR {what}")
        for site in self.pair.sites:
            other = self._other(site)
            self(
                site,
                f"CREATE SUBSCRIPTION {self.subscriptions[site]} CONNECTION "
                f"'host=127.0.0.1 port={other.port} user={other.user} "
                f"dbname={self.name}' "
                f"PUBLICATION shop WITH (origin = none, copy_data = false)",
            )

    def cut(self) -> None:
        """Cut the link, and wait until nothing comes over it."""
        for site in self.pair.sites:
            self(site, f"ALTER SUBSCRIPTION {self.subscriptions[site]} DISABLE")
        for site in self.pair.sites:
            site.wait_for(lambda site=site: not self.is_receiving(site), "cut off")

    def heal(self) -> None:
        """Let the sites hear of each other again."""
        for site in self.pair.sites:
            self(site, f"ALTER SUBSCRIPTION {self.subscriptions[site]} ENABLE")

    def is_receiving(self, site: PostgreSQL) -> bool:
        """Whether a process of the site listens to the other."""
        name = self.subscriptions[site]
        query = f"SELECT pid FROM pg_stat_subscription WHERE subname = '{name}'"
        return any(row["pid"] for row in self(site, query))

    def troubles(self, site: PostgreSQL) -> dict[str, int]:
        """Return the counts of errors and conflicts that are not 0."""
        name = self.subscriptions[site]
        query = f"SELECT * FROM pg_stat_subscription_stats WHERE subname = '{name}'"
        [row] = self(site, query)
        counted = row.items()
        kinds = ("error_count", "confl_")
        return {
            key: count
            for key, count in counted
            if count and any(kind in key for kind in kinds)
        }

    def orders(self, site: PostgreSQL) -> dict[str, str]:
        """Return the names of a site's orders by id."""
        rows = self(site, "SELECT id, name FROM records_order")
        return {row["id"]: row["name"] for row in rows}

    def counters(self, site: PostgreSQL) -> dict[str, int]:
        """Return Max of a site's counters."""
        rows = self(site, "SELECT id, max FROM django_hilo_hilodocument")
        return {row["id"]: row["max"] for row in rows}

    def wait_until_equal(self) -> None:
        """Wait until both sites have the same orders."""
        a, b = self.pair.sites
        a.wait_for(
            lambda: self.orders(a) == self.orders(b), "up to date with the other site"
        )

    def drop(self) -> None:
        """Drop it on both sites, and what they replicate."""
        for site in self.pair.sites:
            name = self.subscriptions[site]
            query = f"SELECT 1 FROM pg_subscription WHERE subname = '{name}'"
            if self(site, query):
                self(site, f"DROP SUBSCRIPTION {name}")
        for site in self.pair.sites:
            site.execute(f"DROP DATABASE {self.name} WITH (FORCE)")

    def _other(self, site: PostgreSQL) -> PostgreSQL:
        a, b = self.pair.sites
        return b if site is a else a
