"""Database servers that tests start in folders of their own, kill, and start again."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support import debian_unstable
from tests.support.databases import use_pymysql_without_mysqlclient
from tests.support.own_server import DEBIAN_POSTGRES, Server
from tests.support.packaged_postgres import packaged_programs
from tests.support.patience import PATIENCE

use_pymysql_without_mysqlclient()


class PostgreSQL(Server):
    """PostgreSQL, of Debian's newest version unless told otherwise."""

    system_user = "postgres"
    programs = ("initdb", "postgres")
    user = "postgres"

    def __init__(self, folder: Path, bin: Path | None = None) -> None:
        super().__init__(folder)
        self.bin = bin or DEBIAN_POSTGRES[-1]
        self.data = folder / "data"

    @property
    def url(self) -> str:
        return f"postgres://{self.user}@127.0.0.1:{self.port}/"

    def install(self, **options: str) -> None:
        self.run(
            *(self.bin / "initdb", "-D", self.data, "-U", self.user, "-A", "trust"),
            *("-E", "UTF8", "--no-sync", "--locale=C"),
        )
        self.configure(
            {
                "listen_addresses": "127.0.0.1",
                # The system keeps what a killed server wrote; a power cut would not.
                "fsync": "off",
                "max_connections": "200",
                "shared_buffers": "64MB",
                **options,
            }
        )

    def configure(self, options: dict[str, str]) -> None:
        """Add settings for the next start."""
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{key} = '{value}'\n" for key, value in options.items())

    def command(self) -> list[str]:
        program = str(self.bin / "postgres")
        place = ["-p", str(self.port), "-k", str(self.folder)]
        return [program, "-D", str(self.data), *place]

    def stop(self, how: int = signal.SIGINT) -> None:
        # Fast: sessions are ended, not waited for.
        super().stop(how)

    def execute(self, *statements: str, database: str = "postgres") -> Any:
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(
            f"{self.url}{database}",
            autocommit=True,
            connect_timeout=PATIENCE,
            row_factory=dict_row,
        ) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def sessions(self, database: str) -> list[tuple[int, str]]:
        """Return the sessions in a database, each with what it does."""
        rows = self.execute(
            f"SELECT pid, state || ': ' || query AS text FROM pg_stat_activity "
            f"WHERE datname = '{database}'"
        )
        return [(row["pid"], row["text"]) for row in rows]

    def end_session(self, session: int) -> None:
        """End a session, as an administrator would."""
        self.execute(f"SELECT pg_terminate_backend({session})")


class PostgreSQL18(PostgreSQL):
    """PostgreSQL 18, of a wheel."""

    programs = ()

    def install(self, **options: str) -> None:
        bin = packaged_programs(self.folder)
        assert bin is not None, "Install the dependency group 'cluster'."
        self.bin = bin
        super().install(**options)


class MariaDB(Server):
    """MariaDB, of Debian's package."""

    system_user = "mysql"
    programs = ("mariadbd", "mariadb-install-db")
    log = "error.log"
    # Written at each commit, and kept by the system when the server is killed.
    options = """\
skip-name-resolve
innodb_flush_log_at_trx_commit=2
innodb_log_file_size=32M
"""

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/"

    def my_cnf(self) -> str:
        """Return the configuration."""
        return f"""\
[mysqld]
datadir={self.folder}/data
socket={self.folder}/socket
pid-file={self.folder}/pid
log-error={self.folder}/error.log
bind-address=127.0.0.1
port={self.port}
innodb_buffer_pool_size=64M
max_connections=200
performance_schema=OFF
{self.options}"""

    def configure(self) -> None:
        """Write the configuration."""
        (self.folder / "my.cnf").write_text(self.my_cnf())

    def install(self) -> None:
        self.configure()
        self.run(
            *("mariadb-install-db", "--no-defaults", "--skip-test-db"),
            *("--auth-root-authentication-method=normal",),
            f"--datadir={self.folder}/data",
        )

    def command(self) -> list[str]:
        return ["mariadbd", f"--defaults-file={self.folder}/my.cnf"]

    def execute(self, *statements: str, patience: int = PATIENCE) -> Any:
        import MySQLdb

        connection = MySQLdb.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            connect_timeout=patience,
            read_timeout=patience,
            autocommit=True,
        )
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def sessions(self, database: str) -> list[tuple[int, str]]:
        """Return the sessions in a database, each with what it does."""
        rows = self.execute(
            f"SELECT p.id, CONCAT(p.command, ': ', COALESCE(p.info, '')) "
            f"FROM information_schema.processlist p WHERE p.db = '{database}'"
        )
        return [(number, text) for number, text in rows]

    def end_session(self, session: int) -> None:
        """End a session, as an administrator would."""
        import MySQLdb

        with suppress(MySQLdb.OperationalError):  # it has ended
            self.execute(f"KILL CONNECTION {session}")


class NewestMariaDB(MariaDB):
    """MariaDB of Debian's unstable suite."""

    system_user = ""
    programs = ("debootstrap",)
    options = "skip-name-resolve\nuser=root\n"

    def install(self) -> None:
        self.configure()
        root = debian_unstable.mariadb()
        self.run(
            *(root / "usr/bin/mariadb-install-db", "--no-defaults", "--skip-test-db"),
            *(f"--basedir={root}/usr", f"--datadir={self.folder}/data"),
            *("--auth-root-authentication-method=normal", "--user=root"),
        )

    def command(self) -> list[str]:
        root = debian_unstable.mariadb()
        options = (f"--defaults-file={self.folder}/my.cnf", f"--basedir={root}/usr")
        return debian_unstable.command("usr/sbin/mariadbd-binary", *options, root=root)


class MySQL(MariaDB):
    """MySQL, of Debian's unstable suite."""

    system_user = ""
    programs = ("debootstrap",)

    # Debian 12 has no user of its own for it. The system keeps what a killed server
    # wrote; a power cut would not.
    options = f"""\
user=root
basedir={debian_unstable.ROOT}/usr
mysqlx=OFF
secure-file-priv=
skip-log-bin
innodb_flush_method=nosync
innodb_redo_log_capacity=32M
"""

    def install(self) -> None:
        debian_unstable.prepare()
        self.configure()
        self.run(*self.command(), "--initialize-insecure")

    def command(self) -> list[str]:
        return debian_unstable.command(
            "usr/sbin/mysqld", f"--defaults-file={self.folder}/my.cnf"
        )


OwnServer = PostgreSQL | MariaDB
KINDS: dict[str, type[OwnServer]] = {
    "postgres": PostgreSQL,
    "mariadb": MariaDB,
    "mysql": MySQL,
}
# Of versions that Debian's stable suite lacks.
NEWEST: dict[str, type[OwnServer]] = {
    "postgres": PostgreSQL18,
    "mariadb": NewestMariaDB,
}
