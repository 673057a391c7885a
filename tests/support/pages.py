"""A page of the documentation, followed from top to end in a project of its own.

What is done with each fence:

- ``python`` that begins with the name of a file, ``# shop/models.py``: added to that
- ``pycon``: a doctest in a process of the project, which those after each other share
- ``console``: commands, each line under which is in what it printed. Those of pip are
  passed over; a ``runserver`` ends the one before, and is started on a free port, which
  stands for 127.0.0.1:8000 from there on

A first line that ends in ``on PostgreSQL, MariaDB`` is of a fence for these alone.
"""

import os
import re
import sys
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from django.db import connections

from tests.settings import CONTRIB, MIDDLEWARE, TEMPLATES
from tests.support.commands import PROJECT, at_a_terminal
from tests.support.databases import CHOSEN
from tests.support.projects import Project, code_of
from tests.support.servers import runserver

NAMES = {
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "mysql": "MySQL",
    "sqlite": "SQLite",
}
RUN = ("python", "pycon", "console")
ADDRESS = "127.0.0.1:8000"

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ONE = f"(?:{'|'.join(NAMES.values())})"
_FOR = re.compile(rf"\bon ({_ONE}(?:, {_ONE})*)$")
_FILE = re.compile(r"# ([\w/.]+\.py)\b")

# What `startproject` makes, and pages take for granted.
STARTED = {
    "INSTALLED_APPS": [*CONTRIB, "django_hilo", "shop"],
    "MIDDLEWARE": MIDDLEWARE,
    "TEMPLATES": TEMPLATES,
    "ROOT_URLCONF": "urls",
    "ALLOWED_HOSTS": ["*"],
}
URLS = """
    from django.contrib import admin
    from django.urls import include, path

    urlpatterns = [path("admin/", admin.site.urls)]
"""
# The page's settings, but for where its databases are.
PLACED = """
    from settings import *
    from tests.support.databases import CHOSEN, settings_for
    for alias, name in %(places)r.items():
        place = {**settings_for(CHOSEN, "project"), "NAME": name}
        test = DATABASES.get(alias, {}).get("TEST", {})
        DATABASES[alias] = {**place, "TEST": test}
"""
MANAGE = """
    import sys
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
"""
DOCTESTS = """
    import doctest, sys
    from django.conf import settings
    parsed = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "page", None, 0)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed)
    sys.exit(failed or not tried)
"""


class Fence(NamedTuple):
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def is_for_us(self) -> bool:
        """Whether the databases of this run are meant."""
        named = _FOR.search(self.first)
        return named is None or NAMES[CHOSEN] in named[1].split(", ")

    @property
    def file(self) -> str | None:
        named = _FILE.match(self.first)
        return named[1] if named else None


def fences(page: Path) -> list[Fence]:
    """Return what a page has to be run."""
    found = [Fence(*parts) for parts in _FENCE.findall(page.read_text())]
    return [fence for fence in found if fence.language in RUN]


class Follower(Project):
    """Whoever does what a page says.

    ``places`` are the databases that stand for those of the page, by alias; without it
    those of the page's settings are used.
    """

    def __init__(
        self, folder: Path, name: str, places: dict[str, str] | None = None
    ) -> None:
        self._places = places
        super().__init__(folder, name)
        self._servers = ExitStack()
        self._port: int | None = None
        self.set(**STARTED)
        self.write("manage.py", MANAGE)
        self.write("urls.py", URLS)
        self.write("placed.py", PLACED % {"places": places})

    def follow(self, page: Path) -> None:
        """Do what the page says, or fail where it does not come out so."""
        with self._servers:
            wanted = [fence for fence in fences(page) if fence.is_for_us]
            for language, group in groupby(wanted, key=lambda fence: fence.language):
                together = list(group)
                if language == "pycon":
                    self.test("\n".join(fence.text for fence in together))
                    continue
                for fence in together:
                    if language == "python":
                        self.add(fence)
                    else:
                        self._enter(fence.text)

    def add(self, fence: Fence) -> None:
        """Add the code of a fence to the file that it names."""
        assert fence.file is not None, f"Of which file is this?\n{fence.text}"
        file = self.folder / fence.file
        before = file.read_text() if file.exists() else ""
        self.write(fence.file, f"{before}\n\n{fence.text}")

    def test(self, examples: str) -> None:
        """Run examples in a process of the project."""
        command = [*self._python, "-c", code_of(DOCTESTS)]
        self._done(*command, input=self._here(examples))

    def _enter(self, text: str) -> None:
        printed: list[str] = []
        for line in text.splitlines():
            if line.startswith("$ python manage.py runserver"):
                self._servers.close()
                server = runserver(self.folder, self.environment)
                self._port = self._servers.enter_context(server)
            elif line.startswith("$ ") and not line.startswith("$ python -m pip "):
                printed = self.shell(self._here(line[2:])).splitlines()
            elif not line.startswith(("$ ", "# ")):
                assert line.rstrip() in printed, "\n".join(printed)

    def shell(self, command: str) -> str:
        """Run a command as at a terminal in the project; return what it printed."""
        return at_a_terminal(command, self.folder, self.environment).strip()

    def _here(self, text: str) -> str:
        return text.replace(ADDRESS, f"127.0.0.1:{self._port}") if self._port else text

    @property
    def environment(self) -> dict[str, str]:
        """The variables that pages speak of: where the database is, and Python."""
        given = connections["default"].settings_dict
        binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {
            **super().environment,
            **({"DJANGO_SETTINGS_MODULE": "placed"} if self._places else {}),
            "PATH": binaries,
            "SECRET_KEY": "tests only, and longer than Django wants it to be",
            "DB_NAME": self.database,
            "DB_USER": given["USER"],
            "DB_PASSWORD": given["PASSWORD"],
            "DB_HOST": given["HOST"],
            "DB_PORT": str(given["PORT"]),
        }


def page(name: str) -> Path:
    """Return a page of docs."""
    return PROJECT / "docs" / name


def blocks(page: Path, title: str, language: str) -> list[str]:
    """Return the fences of a language under a heading of a page."""
    [section] = re.findall(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ [A-Z]|\Z)",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    found = [text for name, text in _FENCE.findall(section) if name == language]
    assert found, f"No {language} under {title!r}"
    return found
