"""10,000 counters of 500 tenants: what they hold, and how long operators wait."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

from django.contrib import admin
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connections
from django.test import RequestFactory, override_settings
from django.urls import path

from benchmarks.bench import Bench
from benchmarks.child import run
from benchmarks.databases import TITLES
from benchmarks.memory import traced
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread, seconds_of
from django_hilo.generator import next_id
from django_hilo.models import HiLoDocument

THREADS = 1_000
# Of a tenant; each thread draws from ten of its counters.
THREADS_EACH = 2
COUNTERS = 10
ROUNDS = 5

urlpatterns = [path("admin/", admin.site.urls)]


def measure(bench: Bench) -> Iterator[Finding]:
    """Let threads draw from all counters at once, and operators look at them."""
    using = bench.server
    threads = bench.scaled(THREADS, THREADS // 10)
    where = f"{TITLES[using]}, {threads * COUNTERS:,} counters"
    held = float(run("many", using, str(threads)))
    yield Result("memory_threads", f"{where}, {threads:,} threads", Spread.of([held]))
    looks = {
        "show": partial(_show, using),
        "changelist": partial(_changelist, using),
        "checks": partial(_checks, using),
    }
    for key, look in looks.items():
        look()
        times = [seconds_of(look) for _ in range(ROUNDS)]
        yield Result(key, where, Spread.of(times))
    HiLoDocument.objects.using(using).all().delete()


def _show(using: str) -> None:
    call_command("hilo_show", database=using, stdout=io.StringIO())


def _checks(using: str) -> None:
    run_checks(databases=[using], include_deployment_checks=True)


@override_settings(ROOT_URLCONF="benchmarks.many")
def _changelist(using: str) -> None:
    """Render the list of counters, as a superuser gets it."""
    request = RequestFactory().get("/admin/", {"database": using})
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    page = admin.site.get_model_admin(HiLoDocument).changelist_view(request)
    page.render()


def child(using: str, threads: str) -> None:
    """Print the bytes that a counter takes after all threads have drawn from theirs."""
    tracemalloc.start()
    count = int(threads)
    next_id("first-of-all", using)
    before = traced()
    # A server has not so many connections; its threads find ranges in memory.
    for thread in range(count):
        _draw(using, thread)
    _draw_at_once(using, count)
    print((traced() - before) / (count * COUNTERS))


def _draw_at_once(using: str, threads: int) -> None:
    start = Barrier(threads)

    def draw(thread: int) -> None:
        start.wait()
        _draw(using, thread)

    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(draw, range(threads)))


def _draw(using: str, thread: int) -> None:
    tenant = f"tenant{thread // THREADS_EACH}"
    # As django-tenants has it for the thread of a request.
    vars(connections[using])["schema_name"] = tenant
    first = thread % THREADS_EACH * COUNTERS
    for number in range(first, first + COUNTERS):
        next_id(f"{tenant}_{number}", using)
