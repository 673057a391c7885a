"""What a new process takes: to start with many models, and until its first row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connections

from benchmarks.bench import Bench
from benchmarks.databases import SQLITE, TITLES
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread, interleaved, spreads

AUTO, HILO = "AutoField", "django_hilo"
KEYS = {
    AUTO: "id = models.BigAutoField(primary_key=True)",
    HILO: (
        "from django_hilo.fields import HiLoField\n"
        "    from django_hilo.managers import HiLoManager\n"
        "    id = HiLoField(primary_key=True)\n"
        "    objects = HiLoManager()"
    ),
}
TABLES = {AUTO: "shop_autoorder", HILO: "shop_order"}
# A project's models are imported in setup(); here they are made right after it.
CODE = """
import json, sys, time
from django.conf import settings
apps, database, table, models_wanted, is_saved = json.loads(sys.argv[1])
settings.configure(INSTALLED_APPS=apps, DATABASES={{"default": database}}, USE_TZ=True)
began = time.perf_counter()
import django
django.setup()
from django.db import models
class Order(models.Model):
    {key}
    name = models.CharField(max_length=64, default="")
    quantity = models.IntegerField(default=0)
    class Meta:
        app_label, db_table = "contenttypes", table
for number in range(models_wanted - 1):
    values = {{"__module__": __name__, "id": Order._meta.pk.clone()}}
    values["Meta"] = type("Meta", (), {{"app_label": "contenttypes"}})
    type(f"Model{{number}}", (models.Model,), values)
if is_saved:
    Order.objects.create(name="chai")
    print(time.perf_counter() - began)
else:
    print(time.process_time())
"""
MODELS = 200
ROUNDS = 9
# Processes in a turn: the best counts, since others on the machine only add to it.
AT_ONCE = 5


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare new processes with and without the app."""
    memory = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    where = TITLES[SQLITE]
    yield compared(bench, "startup", where, memory, MODELS, is_saved=False)
    if bench.server != SQLITE:
        server = connections[bench.server].settings_dict
        known = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")
        database = {key: str(server[key]) for key in known}
        where = TITLES[bench.server]
        yield compared(bench, "first_row", where, database, 1, is_saved=True)


def compared(
    bench: Bench,
    key: str,
    where: str,
    database: dict[str, Any],
    models: int,
    *,
    is_saved: bool,
) -> Result:
    """Compare the two by rank: a process that was disturbed tells nothing of others."""
    # An installed package is compiled, whatever this process may write.
    with TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        turns = {}
        for name in (AUTO, HILO):
            apps = ["django.contrib.contenttypes", "django.contrib.auth"]
            apps += [HILO] * (name == HILO)
            asked = json.dumps([apps, database, TABLES[name], models, is_saved])
            command = [sys.executable, "-c", CODE.format(key=KEYS[name]), asked]
            turns[name] = partial(_turn, command, environment)
        figures = interleaved(turns, bench.scaled(ROUNDS, 3), seed=bench.seed)
    pairs = zip(sorted(figures[HILO]), sorted(figures[AUTO]), strict=True)
    times = Spread.of([ours / others for ours, others in pairs])
    return Result(key, where, times, spreads(figures), "ms")


def _turn(command: list[str], environment: dict[str, str]) -> float:
    run = partial(subprocess.run, check=True, stdout=subprocess.PIPE, text=True)
    starts = [run(command, env=environment).stdout for _ in range(AT_ONCE)]
    return min(map(float, starts)) * 1000
