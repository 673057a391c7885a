import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.long.cluster.load import Load, running
from tests.long.cluster.postgres.pair import Pair
from tests.long.cluster.postgres.process import Process
from tests.long.cluster.postgres.replicated import Replicated, prepared_server
from tests.long.cluster.postgres.server import PostgreSQL
from tests.support.own_server import DEBIAN_POSTGRES, missing_programs
from tests.support.packaged_postgres import PACKAGE, packaged_programs
from tests.support.programs import programs, require


@pytest.fixture(scope="session")
def pair(folder) -> Iterator[Pair]:
    """Two sites with servers of PostgreSQL 18."""
    programs = packaged_programs(folder)
    if programs is None or missing_programs("setpriv"):
        require(f"no pair of sites without setpriv and the package {PACKAGE}")
    with running(Pair(programs, folder)) as pair:
        yield pair


@pytest.fixture
def load(tmp_path) -> Iterator[Load]:
    load = Load(tmp_path)
    yield load
    load.end_by_force()


@pytest.fixture
def process() -> Iterator[Callable[[dict[str, str]], Process]]:
    """Start processes that run on until the test is over."""
    with programs(Process) as start:
        yield start


@pytest.fixture(scope="session")
def prepared(folder) -> PostgreSQL:
    if missing_programs("pg_basebackup", "setpriv"):
        require("no standby without the programs of PostgreSQL's server")
    return prepared_server(DEBIAN_POSTGRES[-1], folder)


@pytest.fixture
def servers(folder, prepared) -> Iterator[Replicated]:
    """A primary and its standby, new for each test."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        Path(name).chmod(0o755)
        with running(Replicated(prepared, Path(name))) as servers:
            yield servers
