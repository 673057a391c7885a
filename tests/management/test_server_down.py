"""What commands say of a database that is down, or refuses."""

import json
import os

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections

from django_hilo.counters import reserve
from tests.support.commands import told_by
from tests.support.databases import CHOSEN
from tests.support.ports import free_port
from tests.support.projects import Project, project_in

DOWN = """connection failed: connection to server at "127.0.0.1", port 1 failed: refused
\tIs the server running on that host and accepting TCP/IP connections?"""
SETTINGS = """
DATABASES["other"] = {**DATABASES["default"], %s}
DATABASE_ROUTERS = []
"""


@pytest.fixture
def down(db, monkeypatch):
    """The database "other" is down; TestCases have a connection already."""

    def refuse():
        raise OperationalError(DOWN)

    monkeypatch.setattr(connections["other"], "ensure_connection", refuse)


@pytest.mark.django_db(databases=["default", "other"])
class TestShow:
    def test_the_others_are_shown(self, down, capsys):
        reserve("orders", 32)
        with pytest.raises(CommandError) as raised:
            call_command("hilo_show")
        assert str(raised.value) == f"other: {DOWN.splitlines()[0]}"
        assert raised.value.returncode == 1
        assert "default   orders" in capsys.readouterr().out

    def test_as_json(self, down, capsys):
        reserve("orders", 32)
        with pytest.raises(CommandError, match="^other: connection failed"):
            call_command("hilo_show", format="json")
        [counter] = json.loads(capsys.readouterr().out)["counters"]
        assert counter["collection"] == "orders"

    def test_buckets(self, down, capsys):
        with pytest.raises(CommandError, match="^other: connection failed"):
            call_command("hilo_show", "--buckets")
        out = capsys.readouterr().out
        assert "default: 0 rows" in out
        assert "other" not in out

    def test_an_empty_database_beside_it(self, down, capsys):
        with pytest.raises(CommandError):
            call_command("hilo_show")
        assert "no counters" not in capsys.readouterr().out
        assert "no counters" in told_by("hilo_show", database="default")


@pytest.mark.django_db(databases=["default", "other"])
@pytest.mark.parametrize(
    "command",
    [
        ["hilo_raise_max"],
        ["hilo_adopt", "orders", "--table=t.id"],
        ["hilo_move_plan", "django_hilo", "0001"],
    ],
)
def test_one_line(down, command):
    with pytest.raises(CommandError) as raised:
        call_command(*command, "--database=other")
    assert str(raised.value) == f"other: {DOWN.splitlines()[0]}"


@pytest.mark.django_db(databases=["default", "other"])
@pytest.mark.skipif(CHOSEN == "sqlite", reason="counters stay with the rows")
def test_the_home_is_down(down, settings):
    settings.HILO = {**settings.HILO, "DATABASE": "other"}
    with pytest.raises(CommandError, match="^other: connection failed"):
        call_command("hilo_adopt", "orders", "--table=t.id")


@pytest.mark.servers
def test_a_server_that_is_down(tmp_path, transactional_db):
    with project_in(tmp_path) as project:
        project.manage("migrate", "-v0")
        put_down(project)
        shown = project.manage("hilo_show", expect=1).splitlines()
        assert shown[-1].startswith("CommandError: other: ")
        assert len(shown) == 1
        assert "migrations" not in shown[-1]
        for command in (
            ["hilo_raise_max"],
            ["hilo_move_plan", "django_hilo", "0001"],
            ["hilo_adopt", "orders", "--table=t.id"],
        ):
            told = project.manage(*command, "--database=other", expect=1)
            assert told.startswith("CommandError: other: "), told
            assert "\n" not in told, told
            assert "migrations" not in told


def put_down(project: Project) -> None:
    place = f'"NAME": {os.fspath(project.folder / "no/such.sqlite3")!r}'
    if CHOSEN != "sqlite":
        place = f'"HOST": "127.0.0.1", "PORT": {free_port()}'
    with (project.folder / "settings.py").open("a") as settings:
        settings.write(SETTINGS % place)
