"""Throw-away projects: a folder with settings, apps and a database of its own.

What runs there is the real command, in a process of its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from django.db import connections

from tests.support import warm
from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN

SETTINGS = """
from tests.support.databases import CHOSEN, PATIENT, settings_for
DATABASES = {"default": {**settings_for(CHOSEN, "project"), "NAME": %(NAME)r}}
DATABASES["default"]["TEST"] = {"NAME": %(TEST)r}  # the same in each process
if CHOSEN == "sqlite":
    DATABASES["default"]["OPTIONS"] = PATIENT
"""
# Ends a migration whose function `fill` fills the tables that it makes.
EVENT_TABLES = """\
        operations = [
            migrations.CreateModel(
                "Event",
                [
                    ("id", HiLoBigAutoField(primary_key=True, serialize=False)),
                    ("name", models.CharField(max_length=50)),
                ],
                managers=[("objects", HiLoManager())],
            ),
            migrations.CreateModel(
                "Plain",
                [
                    ("id", HiLoBigAutoField(primary_key=True, serialize=False)),
                    ("event", models.ForeignKey("shop.Event", models.CASCADE)),
                ],
            ),
            migrations.RunPython(fill, migrations.RunPython.noop),
        ]
"""


class Project:
    """A folder that `manage.py` would stand in, and its database."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.database = str(folder / "project.sqlite3") if CHOSEN == "sqlite" else name
        self._settings: dict[str, Any] = {
            "SECRET_KEY": "tests only",
            "USE_TZ": True,
            "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
            "INSTALLED_APPS": ["django_hilo"],
            "SILENCED_SYSTEM_CHECKS": ["django_hilo.W025"],
        }
        self.set()

    def set(self, **settings: Any) -> None:
        """Change the project's settings."""
        self._settings.update(settings)
        test = (
            f"{self.database}.test" if CHOSEN == "sqlite" else f"test_{self.database}"
        )
        lines = [SETTINGS % {"NAME": self.database, "TEST": test}]
        lines += [f"{name} = {value!r}" for name, value in self._settings.items()]
        (self.folder / "settings.py").write_text("\n".join(lines))

    def write(self, path: str, text: str) -> None:
        """Write a file of the project, its folders and packages as well."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for package in file.relative_to(self.folder).parents:
            if package != Path():
                (self.folder / package / "__init__.py").touch()
        file.write_text(dedent(text))

    def manage(self, *arguments: str, expect: int = 0) -> str:
        """Run a command of Django; return what it printed."""
        return self._done(*self._python, "-m", "django", *arguments, expect=expect)

    def migrate(self, *apps: str) -> str:
        """Make the migrations of apps, and apply all; return what was made."""
        return self.run(
            f"""
            from django.core.management import call_command
            call_command("makemigrations", *{apps!r})
            call_command("migrate", verbosity=0)
            call_command("makemigrations", check=True, verbosity=0)
            """
        )

    def run(self, code: str, *arguments: str, expect: int = 0) -> str:
        """Run a piece of Python in the project; return what it printed."""
        command = [*self._python, "-c", code_of(code), *arguments]
        return self._done(*command, expect=expect)

    def pytest(self, *options: str) -> str:
        """Run tests of the project; return what was printed."""
        return self.run(
            """
            import os, sys, pytest
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            os.environ.pop("PYTEST_ADDOPTS", None)  # of plugins that are not loaded
            names = "xdist.plugin", "pytest_django.plugin", "django_hilo.pytest_plugin"
            plugins = [f"-p{name}" for name in names]
            sys.exit(pytest.main(["-q", *plugins, *sys.argv[1:]]))
            """,
            *options,
        )

    def start(self, code: str, *arguments: str) -> warm.Popen:
        """Start a piece of Python that runs beside others."""
        return warm.Popen(
            [*self._python, "-c", code_of(code), *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{PROJECT}",
            "PYTHONDONTWRITEBYTECODE": "1",  # files change within a second
        }

    @property
    def _python(self) -> list[str]:
        return [sys.executable, "-W", "error"]

    def _done(self, *command: str, expect: int = 0, **options: Any) -> str:
        place = {"cwd": self.folder, "env": self.environment}
        done = warm.run(*command, expect=expect, **place, **options)
        return (done.stdout + (done.stderr if expect else "")).strip()


def code_of(code: str) -> str:
    return "import django; django.setup()\n" + dedent(code)


@contextmanager
def project_in(folder: Path) -> Iterator[Project]:
    """Make a project with an empty database, which is dropped afterwards."""
    with database("hilo_project") as name:
        yield Project(folder, name)


@contextmanager
def database(prefix: str) -> Iterator[str]:
    """Make an empty database, which is dropped afterwards; not of SQLite."""
    name = f"{prefix}_{os.getpid()}"
    if CHOSEN == "sqlite":
        yield name
        return
    creation = connections["default"].creation
    _execute(creation, f"DROP DATABASE IF EXISTS {name}")
    _execute(creation, f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        _execute(creation, f"DROP DATABASE IF EXISTS {name}")


def _execute(creation: Any, statement: str) -> None:
    with creation._nodb_cursor() as cursor:
        cursor.execute(statement)
