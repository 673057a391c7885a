"""The project of docs/how-to/postgresql.md, and the commands that stand there."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.long.cluster.postgres.server import PostgreSQL
from tests.support.commands import output_of
from tests.support.pages import MANAGE, blocks, page
from tests.support.projects import Project

PAGE = page("how-to/postgresql.md")
DATABASE = "shop"
MODELS = """
    from django.db import models

    from django_hilo.fields import HiLoField
    from django_hilo.managers import HiLoManager


    class Order(models.Model):
        id = HiLoField(primary_key=True)
        name = models.CharField(max_length=50, default="")
        objects = HiLoManager()


    class OrderLine(models.Model):
        id = HiLoField(primary_key=True)
        order = models.ForeignKey(Order, models.PROTECT)
        name = models.CharField(max_length=50, default="")
        objects = HiLoManager()
"""


class Shop(Project):
    """A folder with manage.py, settings, and an app."""

    def __init__(
        self, folder: Path, servers: Sequence[PostgreSQL], tag: str, **variables: str
    ) -> None:
        folder.mkdir(parents=True)
        self._servers = servers
        self._variables = variables
        super().__init__(folder, DATABASE)
        self.write("manage.py", MANAGE)
        self.write("shop/models.py", MODELS)
        entry: dict[str, Any] = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": DATABASE,
            "USER": PostgreSQL.user,
            "HOST": ",".join("127.0.0.1" for _ in servers),
            "PORT": ",".join(str(server.port) for server in servers),
            "OPTIONS": {"target_session_attrs": "read-write", "connect_timeout": 180},
        }
        apps = ["django_hilo", "shop"]
        self.set(DATABASES={"default": entry}, INSTALLED_APPS=apps)
        self.set_tag(tag)

    def set_tag(self, tag: str) -> None:
        """Change the node tag in the settings."""
        self.set(HILO={"NODE_TAG": tag, "CAPACITY": 4, "MAX_CAPACITY": 8})

    def migrate(self) -> None:
        """Make the tables."""
        self.manage("makemigrations", "shop", "--verbosity=0")
        self.manage("migrate", "--verbosity=0")

    def print(self, code: str) -> list[str]:
        """Run a piece of Python; return the lines that it printed."""
        return self.run(f"from shop.models import *\n{dedent(code)}").splitlines()

    def shell(self, script: str, **variables: str) -> str:
        """Run commands of a shell until one fails, which none should."""
        self._variables |= variables
        command = "bash", "-euo", "pipefail", "-c", script
        return output_of(*command, cwd=self.folder, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        given = super().environment
        programs = Path(sys.executable).parent, self._servers[0].bin
        path = ":".join([*map(str, programs), given["PATH"]])
        return {**given, "PATH": path, **self._variables}


def dsn(server: PostgreSQL, database: str = DATABASE) -> str:
    """Return a connection string, as the page has them in variables."""
    return f"host=127.0.0.1 port={server.port} user={PostgreSQL.user} dbname={database}"


def scripts(title: str) -> list[tuple[str, str]]:
    """Return the blocks of commands under a heading: the site named first, and each."""
    return [_script(block) for block in blocks(PAGE, title, "console")]


def _script(block: str) -> tuple[str, str]:
    site = ""
    first, _, rest = block.partition("\n")
    if first.startswith("# on site "):
        site, block = first.removeprefix("# on site "), rest
    assert block.startswith("$ "), block
    return site, re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
