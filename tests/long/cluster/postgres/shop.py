"""The project of docs/how-to/postgresql.md, and the commands that stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

from tests.conftest import PROJECT
from tests.long.cluster.postgres.server import PostgreSQL
from tests.support.patience import LONGEST

PAGE = (PROJECT / "docs/how-to/postgresql.md").read_text()
DATABASE = "shop"
SETTINGS = """
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": %(name)r,
        "USER": %(user)r,
        "HOST": %(host)r,
        "PORT": %(port)r,
        "CONN_MAX_AGE": None,
        "OPTIONS": {"target_session_attrs": "read-write", "connect_timeout": 180},
    }
}
HILO = {"NODE_TAG": %(tag)r, "CAPACITY": 4, "MAX_CAPACITY": 8}
SECRET_KEY = "tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_hilo", "shop"]
"""
MANAGE = """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
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


class Shop:
    """A folder with manage.py, settings, and an app."""

    def __init__(self, folder: Path, servers: Sequence[PostgreSQL], tag: str) -> None:
        self.folder = folder
        self.settings_module = "settings"
        self._servers = servers
        (folder / "shop").mkdir(parents=True)
        (folder / "shop" / "__init__.py").touch()
        (folder / "shop" / "models.py").write_text(MODELS)
        (folder / "manage.py").write_text(MANAGE)
        self.set_tag(tag)

    def set_tag(self, tag: str) -> None:
        """Change the node tag in the settings."""
        values = {
            "name": DATABASE,
            "user": PostgreSQL.user,
            "host": ",".join("127.0.0.1" for _ in self._servers),
            "port": ",".join(str(server.port) for server in self._servers),
            "tag": tag,
        }
        (self.folder / "settings.py").write_text(SETTINGS % values)

    def migrate(self) -> None:
        """Make the tables."""
        self.shell("python manage.py makemigrations shop --verbosity=0")
        self.shell("python manage.py migrate --verbosity=0")

    def run(self, code: str) -> list[str]:
        """Run a piece of Python; return the lines that it printed."""
        whole = f"import django; django.setup()\nfrom shop.models import *\n{code}"
        return self._done([sys.executable, "-c", dedent(whole)]).splitlines()

    def shell(self, script: str, **variables: str) -> str:
        """Run commands of a shell until one fails, which none should."""
        return self._done(["bash", "-euo", "pipefail", "-c", script], **variables)

    def _done(self, command: Sequence[str], **variables: str) -> str:
        programs = Path(sys.executable).parent, self._servers[0].bin
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={
                **os.environ,
                **variables,
                "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
                "PYTHONPATH": f"{self.folder}:{PROJECT}",
                "PYTHONDONTWRITEBYTECODE": "1",  # files change within a second
                "DJANGO_SETTINGS_MODULE": self.settings_module,
            },
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def dsn(server: PostgreSQL, database: str = DATABASE) -> str:
    """Return a connection string, as the page has them in variables."""
    return f"host=127.0.0.1 port={server.port} user={PostgreSQL.user} dbname={database}"


def scripts(title: str) -> list[tuple[str, str]]:
    """Return the blocks of commands under a heading: the site named first, and each."""
    [section] = re.findall(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ [A-Z]|\Z)",
        without_comments(PAGE),
        re.MULTILINE | re.DOTALL,
    )
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert blocks, f"No commands under {title!r}"
    return [_script(block.replace(HASH, "# ")) for block in blocks]


# Stands for what begins a comment in a block, which would look like a heading.
HASH = "\0"


def without_comments(page: str) -> str:
    return re.sub(r"^# on site", f"{HASH}on site", page, flags=re.MULTILINE)


def _script(block: str) -> tuple[str, str]:
    site = ""
    first, _, rest = block.partition("\n")
    if first.startswith("# on site "):
        site, block = first.removeprefix("# on site "), rest
    assert block.startswith("$ "), block
    return site, re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
