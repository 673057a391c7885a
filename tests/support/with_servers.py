"""Run a command with database servers of its own:

python -m tests.support.with_servers mysql make test DATABASES=mysql
python -m tests.support.with_servers newest make test DATABASES="postgres mariadb"

The first does nothing but run the command if HILO_TEST_MYSQL names a server.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.support.own_servers import KINDS, NEWEST, OwnServer, PostgreSQL


def main(wanted: str, *command: str) -> int:
    kinds = {"mysql": {"mysql": KINDS["mysql"]}, "newest": NEWEST}[wanted]
    if wanted == "mysql" and os.environ.get("HILO_TEST_MYSQL"):
        kinds = {}
    environment = dict(os.environ)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # for the system users of servers
        for database, kind in kinds.items():
            server: OwnServer = kind(folder / database)
            stack.callback(server.stop)
            server.create()
            environment[f"HILO_TEST_{database.upper()}"] = server.url
            if isinstance(server, PostgreSQL):  # pg_dump refuses newer servers
                environment["PATH"] = f"{server.bin}:{environment['PATH']}"
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
