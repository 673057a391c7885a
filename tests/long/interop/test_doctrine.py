"""Doctrine ORM 2.14 of Debian 12 or 3.7 of unstable, and Django, on one sequence."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_hilo.generator import next_number
from django_hilo.sources import doctrine
from tests.long.interop.mixing import (
    HERE,
    Peer,
    numbers_around_a_rollback,
    only_on_postgres,
    schema,
)
from tests.support import debian_unstable
from tests.support.programs import require
from tests.support.sql import execute

pytestmark = [only_on_postgres, pytest.mark.django_db(transaction=True)]

PACKAGES = "php-cli php-pgsql php-doctrine-orm"
IS_INSTALLED = (
    "exit((int) !(extension_loaded('pdo_pgsql')"
    " && stream_resolve_include_path('Doctrine/ORM/autoload.php')));"
)
# As draw.php has them.
SOURCE = doctrine.Sequence("peer_sequence", allocation_size=10)


def doctrine_2() -> list[str]:
    php = shutil.which("php")
    if not php or subprocess.run([php, "-r", IS_INSTALLED]).returncode:
        require(f"Doctrine is missing. Debian 12: apt install {PACKAGES}")
    return ["php"]


def doctrine_3() -> list[str]:
    if not shutil.which("debootstrap"):
        require("Doctrine 3 is missing. Debian 12: apt install debootstrap")
    return debian_unstable.php("php-doctrine-orm")


PHP = {"ORM 2": doctrine_2, "ORM 3": doctrine_3}


@pytest.fixture(params=PHP)
def peers(request, new_process, capacity, tmp_path: Path) -> Iterator[list[Peer]]:
    """Three, with the sequence as Doctrine's SchemaTool makes it."""
    command = [*PHP[request.param](), str(HERE / "doctrine" / "draw.php")]
    new_process()
    peers = [Peer("doctrine", command, tmp_path) for _ in range(3)]
    try:
        for peer in peers:
            assert peer.do("open") == request.param
        with schema(peers[0]):
            yield peers
    finally:
        for peer in peers:
            peer.end()


def test_no_number_twice(peers, mixed):
    both = mixed(peers, SOURCE)

    assert both.duplicates == 0


def test_a_rollback_gives_no_number_twice(peers):
    numbers = numbers_around_a_rollback(peers[0], SOURCE)

    assert len(set(numbers)) == 90


@pytest.mark.parametrize("first", [1, 101])
@pytest.mark.parametrize("side", ["doctrine", "django"])
def test_worked_examples(side, first, peers):
    execute("SELECT setval('peer_sequence', %s, false)", first)

    def draw() -> int:
        return next_number(SOURCE) if side == "django" else peers[0].draw(1)[0]

    drawn = [
        (draw(), *execute("SELECT last_value FROM peer_sequence")[0]) for _ in range(20)
    ]
    assert drawn == [
        *((number, first) for number in range(first, first + 10)),
        *((number, first + 10) for number in range(first + 10, first + 20)),
    ]
