import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import use_pymysql_without_mysqlclient

use_pymysql_without_mysqlclient()


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder that the system user of the servers may enter."""
    # Not pytest's own: that is closed to others, and its name too long for a socket.
    with tempfile.TemporaryDirectory(prefix="hilo-cluster-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
