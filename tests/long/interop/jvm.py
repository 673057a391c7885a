"""JVMs with Debian 12's Hibernate or EclipseLink, and the counters they draw from."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from django.db import connection

from tests.long.interop.mixing import HERE, Peer
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.programs import require

JARS = Path("/usr/share/java")
SOURCES = HERE / "java"
# Many short lives beside each other on few cores.
OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m"]


class Provider(NamedTuple):
    """A JPA provider: the class that draws from it, and its files."""

    name: str
    jars: tuple[str, ...]
    packages: str

    @property
    def class_path(self) -> list[Path]:
        return [JARS / f"{jar}.jar" for jar in self.jars]


HIBERNATE = Provider(
    "Hibernate",
    (
        *("hibernate-core", "hibernate-commons-annotations", "postgresql"),
        *("geronimo-jpa_2.0_spec", "geronimo-jta-1.2-spec", "slf4j-api", "slf4j-nop"),
        *("javassist", "dom4j", "antlr", "commons-collections3"),
    ),
    "libhibernate3-java libpostgresql-jdbc-java libjavassist-java",
)
ECLIPSELINK = Provider(
    "EclipseLink",
    (
        *("eclipselink", "eclipselink-jpa-2.1-spec", "postgresql"),
        *("org.eclipse.persistence.jpa.jpql", "mariadb-java-client"),
    ),
    "libeclipselink-java libpostgresql-jdbc-java libmariadb-java",
)


@contextmanager
def jvms(provider: Provider, folder: Path, count: int) -> Iterator[list[Peer]]:
    """Start JVMs that draw, with a program that is compiled into the folder."""
    jars = provider.class_path
    if not shutil.which("javac") or not all(jar.exists() for jar in jars):
        packages = f"openjdk-17-jdk-headless {provider.packages}"
        require(f"{provider.name} is missing. Debian 12: apt install {packages}")
    # The last is where JPA finds META-INF.
    path = ":".join(map(str, [folder, *jars, SOURCES]))
    files = [SOURCES / f"{name}.java" for name in ("Draw", provider.name)]
    subprocess.run(["javac", "-d", folder, "-cp", path, *files], check=True)
    command = ["java", *OPTIONS, "-cp", path, provider.name]
    side = provider.name.lower()
    peers = [Peer(side, command, folder, JDBC_URL=_url()) for _ in range(count)]
    try:
        yield peers
    finally:
        for peer in peers:
            peer.end()


def _url() -> str:
    """Return where the test's database is; who waits for a lock gets an error."""
    server = connection.settings_dict
    user = {"user": server["USER"], "password": server["PASSWORD"]}
    if CHOSEN == "postgres":
        kind, port = "postgresql", 5432
        options = {"options": f"-c lock_timeout={PATIENCE}s"}
    else:
        kind, port = "mariadb", 3306
        options = {"sessionVariables": f"innodb_lock_wait_timeout={PATIENCE}"}
    query = urlencode({**user, **options}, safe="=", quote_via=quote)
    address = f"{server['HOST']}:{server['PORT'] or port}/{server['NAME']}"
    return f"jdbc:{kind}://{address}?{query}"


class Counter(NamedTuple):
    """SQL that stores a number in a counter that a provider made, and that reads it."""

    store: str
    stored: str


class Shared(NamedTuple):
    generator: str
    source: Any
    counter: Counter
    # Hibernate reads a pooled counter twice where it is at its start: begin after it.
    first: int


def sequence(name: str) -> Counter:
    return Counter(
        f"SELECT setval('{name}', %s, false)", f"SELECT last_value FROM {name}"
    )


def row(table: str, column: str) -> Counter:
    return Counter(f"UPDATE {table} SET {column} = %s", f"SELECT {column} FROM {table}")
