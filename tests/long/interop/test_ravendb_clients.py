"""RavenDB's official clients, Python and npm, draw from a real server of ours."""

import importlib.util
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Permission, User

from django_hilo.counters import next_gapless_number
from django_hilo.generator import next_id, return_ranges
from django_hilo.identifiers import parse
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.conftest import child_environment
from tests.support.commands import PROJECT
from tests.support.counters import max_of, preset
from tests.support.databases import CHOSEN
from tests.support.patience import PATIENCE
from tests.support.programs import Program, require
from tests.support.servers import gunicorn

pytestmark = pytest.mark.django_db(transaction=True)

HERE = Path(__file__).parent
TOKEN = "interop-7f31"
# As docs/how-to/ravendb.md says: without the path, and so without the token.
ACCESS_LOG_FORMAT = '%(h)s %(l)s %(u)s %(t)s "%(m)s" %(s)s %(b)s'


def environment() -> dict[str, str]:
    return {
        **child_environment(),
        "DJANGO_SETTINGS_MODULE": "tests.long.interop.settings",
        "HILO_TEST_DIGESTS": sha256(TOKEN.encode()).hexdigest(),
        "PYTHONPATH": str(PROJECT),
    }


class Site(NamedTuple):
    """gunicorn with three workers, on a port of its own."""

    url_for_users: str
    log: Path
    access_log: Path

    @property
    def url(self) -> str:
        return f"{self.url_for_users}/{TOKEN}"


@pytest.fixture(scope="module")
def site(django_db_setup, tmp_path_factory) -> Iterator[Site]:
    """One server for all tests: it remembers nothing between requests."""
    folder = tmp_path_factory.mktemp("site")
    log, access_log = folder / "error.log", folder / "access.log"
    options = (
        *("--workers=3", f"--worker-tmp-dir={folder}"),
        *(f"--access-logfile={access_log}", f"--access-logformat={ACCESS_LOG_FORMAT}"),
    )
    with gunicorn("tests.long.interop.wsgi", environment(), *options, log=log) as port:
        yield Site(f"http://127.0.0.1:{port}/raven", log, access_log)


class Client(Program):
    """A client in a process of its own, which reads and writes JSON."""

    def __init__(self, command: list[str], errors: Path) -> None:
        super().__init__(command, environment(), errors, HERE)
        self.has_store = False

    def ask(self, task: str, **parameters: Any) -> None:  # type: ignore[override]
        self.send(json.dumps({"task": task, **parameters}))

    def answer(self) -> Any:
        """Return the answer to what was asked last."""
        return json.loads(self.receive())

    def do(self, task: str, **parameters: Any) -> Any:
        self.ask(task, **parameters)
        return self.answer()

    def close(self) -> None:
        """Close the client's store, which returns the unused end of its ranges."""
        answer = self.do("close")
        assert not isinstance(answer, dict), answer
        self.has_store = False


COMMANDS = {
    "python": [sys.executable, str(HERE / "draw.py")],
    "npm": ["node", str(HERE / "draw.mjs")],
    "django": [sys.executable, str(HERE / "draw_django.py")],
}


@pytest.fixture(scope="module")
def idle(django_db_setup) -> Iterator[list[tuple[str, Client]]]:
    """Programs that wait for work: to import the Python client takes seconds."""
    waiting: list[tuple[str, Client]] = []
    yield waiting
    for _, program in waiting:
        program.end()


@pytest.fixture
def start(idle, tmp_path) -> Iterator[Callable[..., Client]]:
    """Open a store in a process that has no other."""
    working: list[tuple[str, Client]] = []

    def start(
        kind: str, url: str = "", database: str = "shop", user: str = ""
    ) -> Client:
        require_client(kind)
        found = next((entry for entry in idle if entry[0] == kind), None)
        if found:
            idle.remove(found)
        else:
            found = kind, Client(COMMANDS[kind], tmp_path / "errors")
        working.append(found)
        found[1].ask("open", url=url, database=database, user=user)
        found[1].has_store = True
        return found[1]

    yield start
    for _, program in working:
        if program.has_store:
            program.do("close")
    idle += working


def require_client(kind: str) -> None:
    if kind == "npm" and not shutil.which("node"):
        require("node is missing")
    if kind == "npm" and not (HERE / "node_modules" / "ravendb").exists():
        require("The npm client is missing: npm install --prefix tests/long/interop")
    if kind == "python" and importlib.util.find_spec("ravendb") is None:
        require("The Python client is missing: pip install ravendb")


def numbers(ids: list[str]) -> list[int]:
    return [parse(text).number for text in ids]


clients = pytest.mark.parametrize("kind", ["python", "npm"])


@clients
def test_unused_ends_go_back_on_close(site, start, kind):
    preset(32)
    client = start(kind, site.url)

    assert client.do("draw", count=2) == ["orders/33-A", "orders/34-A"]
    assert max_of() == 64
    client.close()

    assert max_of() == 34
    other = start(kind, site.url)
    assert other.do("draw", count=1) == ["orders/35-A"]


@clients
def test_capacity_doubles(site, start, kind):
    """A range that lasted for under 30 s; where one did not, the next may."""
    client = start(kind, site.url)
    preset(64)
    low, give_up_at = 65, time.monotonic() + PATIENCE
    while True:
        started = time.monotonic()
        assert numbers(client.do("draw", count=32)) == [*range(low, low + 32)]
        assert max_of() == low + 31
        first = client.do("draw", count=1)
        if time.monotonic() - started < 30:
            break
        assert time.monotonic() < give_up_at
        client.close()
        low = parse(first[0]).number + 1
        client = start(kind, site.url)
    assert max_of() == low + 31 + 64


def test_the_ways_of_the_python_client(site, start):
    client = start("python", site.url)

    assert client.do("ways") == {
        "stored": "orders/1-A",
        "same": "orders/2-A",
        "document": "products/1-A",
    }
    client.close()

    assert (max_of("orders"), max_of("products")) == (2, 1)
    assert next_id(Order) == "orders/3-A"


def test_the_ways_of_the_npm_client(site, start):
    """It sends the tags orders and Orders, and has a range of each."""
    client = start("npm", site.url)

    assert client.do("ways") == {
        "stored": "orders/1-A",
        "next_of_class": 33,
        "next_of_entity": 34,
        "next_of_name": 1,
        "document": "products/33-A",
    }
    client.close()

    assert (max_of("orders"), max_of("products")) == (34, 33)
    assert next_id(Order) == "orders/35-A"


ROBOT = "robot:pa:ss/word"


def a_robot(*more_permissions: str) -> None:
    robot = User.objects.create_user("robot", password="pa:ss/word")
    codenames = ["take_hilo_ids", *more_permissions]
    robot.user_permissions.set(Permission.objects.filter(codename__in=codenames))


@clients
def test_next_and_seed_identities(site, start, kind):
    """The vectors of NextAndSeedIdentities; Django takes those of new documents."""
    a_robot("change_gaplesscounter", "view_gaplesscounter")
    client = start(kind, site.url_for_users, user=ROBOT)

    def seed(value: int, force: bool = False) -> Any:
        return client.do("seed", name="users", value=value, force=force)

    assert next_gapless_number("users") == 1
    assert client.do("next", name="users") == 2
    assert next_gapless_number("users") == 3
    assert client.do("identities") == {"users|": 3}
    assert seed(1990) == 1990
    assert next_gapless_number("users") == 1991
    assert seed(1975) == 1991
    assert seed(1975, force=True) == 1975
    assert client.do("next", name="Users|") == 1976
    assert client.do("next", name="person|") == 1
    assert client.do("identities") == {"person|": 1, "users|": 1976}


@clients
def test_refusals_reach_the_programmer(site, start, kind):
    wrong = start(kind, site.url + "x").do("draw", count=1)
    assert "not accepted by this server" in wrong["message"]
    unknown = start(kind, site.url, "shopp").do("draw", count=1)
    assert "HILO['RAVENDB_DATABASES']" in unknown["message"]
    assert not HiLoDocument.objects.exists()


@pytest.mark.skipif(CHOSEN == "sqlite", reason="many processes need a server")
def test_both_clients_and_django_at_the_same_time(site, start, capsys):
    """20,000 ids of one collection, in two halves, so that all are at it at once."""
    a_robot()
    kinds = ["python"] * 3 + ["npm"] * 3 + ["django"] * 4
    programs = [start(kinds[0], site.url_for_users, user=ROBOT)]
    programs += [start(kind, site.url) for kind in kinds[1:]]
    assert [program.answer() for program in programs] == [None] * 10
    drawn: list[list[int]] = [[] for _ in programs]

    started = time.monotonic()
    for _ in ("first half", "second half"):
        for program in programs:
            program.ask("draw", count=1000)
        for numbers_of_one, program in zip(drawn, programs, strict=True):
            ids = program.answer()
            assert isinstance(ids, list), ids
            assert {(i.collection, i.node_tag) for i in map(parse, ids)} == {
                ("orders", "A")
            }
            numbers_of_one.extend(numbers(ids))
    seconds = time.monotonic() - started
    reserved = max_of()
    for program in programs:
        program.close()

    every = [*chain.from_iterable(drawn)]
    latest_first, earliest_last = max(map(min, drawn)), min(map(max, drawn))
    with capsys.disabled():
        print(
            f"\n{len(every)} ids on {CHOSEN} by {len(programs)} processes in "
            f"{seconds:.1f} s, {len(every) - len(set(every))} duplicates; all of them "
            f"have numbers under and over {latest_first} to {earliest_last}; "
            f"Max {reserved}, after all closed {max_of()}"
        )
    assert len(every) == 20_000
    assert len(set(every)) == 20_000
    assert latest_first < earliest_last, "each one's numbers overlap with all others'"
    assert max_of() == max(every), "the unused end of the newest range went back"
    assert next_id(Order) == f"orders/{max(every) + 1}-A"
    return_ranges()


def test_the_token_is_not_in_the_logs(site, start):
    client = start("python", site.url)
    client.do("draw", count=1)
    start("python", site.url, "nope").do("draw", count=1)
    client.close()

    logged = site.access_log.read_text()
    assert '"GET" 201' in logged
    assert '"GET" 400' in logged
    assert '"PUT" 204' in logged
    assert TOKEN not in logged
    assert TOKEN not in site.log.read_text()
    assert ACCESS_LOG_FORMAT in (PROJECT / "docs/how-to/ravendb.md").read_text()
