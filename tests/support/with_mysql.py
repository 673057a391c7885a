"""Run a command with a MySQL server of its own, unless HILO_TEST_MYSQL names one:

python -m tests.support.with_mysql make test DATABASES=mysql
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.own_servers import MySQL


def main(*command: str) -> int:
    if os.environ.get("HILO_TEST_MYSQL"):
        return subprocess.run(command).returncode
    with tempfile.TemporaryDirectory() as folder:
        server = MySQL(Path(folder) / "mysql")
        server.create()
        try:
            environment = {**os.environ, "HILO_TEST_MYSQL": server.url}
            return subprocess.run(command, env=environment).returncode
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
