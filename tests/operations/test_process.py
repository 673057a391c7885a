"""Forks, and the ways in which processes end, with real processes."""

import os
import signal
import subprocess
import sys

import pytest

from django_hilo.generator import next_number
from tests.apps.records.models import Order
from tests.conftest import PREAMBLE, child_environment
from tests.support.commands import PROJECT
from tests.support.counters import max_of
from tests.support.databases import CHOSEN
from tests.support.patience import LONGEST
from tests.support.sql import execute

pytestmark = pytest.mark.django_db(transaction=True)


class TestExit:
    def test_the_unused_end_goes_back(self, python):
        python("Order.objects.create()")
        assert max_of() == 1

    def test_of_a_thread_and_after_an_error(self, python):
        python("Order.objects.create(); raise SystemExit(3)", expect=3)
        python("Order.objects.create(); 1 / 0", expect=1)
        assert max_of() == 2

    def test_of_a_process_without_a_connection(self, python):
        python(
            "from django.db import connections\n"
            "Order.objects.create(); connections.close_all()"
        )
        assert max_of() == 1

    def test_a_killed_process_leaves_a_gap(self, python):
        python(
            "import os, signal\n"
            "Order.objects.create(); os.kill(os.getpid(), signal.SIGKILL)",
            expect=-signal.SIGKILL,
        )
        assert max_of() == 32
        assert python("print(Order.objects.create().id)") == "orders/33-A"

    def test_a_database_that_is_away_at_the_end(self, python):
        python(
            "from django.conf import settings\n"
            "from django.db import OperationalError, connections\n"
            "from django.db.backends.base.base import BaseDatabaseWrapper\n"
            "from django_hilo._database.own_connection import close_unused\n"
            "Order.objects.create(); connections.close_all(); close_unused()\n"
            "settings.HILO = {**settings.HILO, 'RETRY_FOR': 0.1}\n"
            "def fail(self): raise OperationalError('gone')\n"
            "BaseDatabaseWrapper.connect = fail\n"
        )
        assert max_of() == 32

    @pytest.mark.parametrize("stand_still", ["lock_the_row()", "answer_nothing()"])
    def test_a_database_that_stands_still_at_the_end(self, python, stand_still):
        """A gap is better than a process that does not end."""
        if CHOSEN == "sqlite" and stand_still == "answer_nothing()":
            pytest.skip("it has no server")
        if CHOSEN == "sqlite" and (3, 12) <= sys.version_info < (3, 12, 3):
            pytest.skip("SQLite's timeout is over first: no thread starts any more")
        code = """
import logging, socket, sys, threading
from django.db import connections, transaction
from django_hilo._database.own_connection import close_unused
from django_hilo.models import HiLoDocument
logging.basicConfig(stream=sys.stdout)
process_hooks._LONGEST_END = 0.1
locked = threading.Event()
def hold():
    with transaction.atomic():
        HiLoDocument.objects.update(size=1)
        locked.set()
        threading.Event().wait()
def lock_the_row():
    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
server = socket.create_server(("127.0.0.1", 0))
def answer_nothing():
    kind, place = type(connections["default"]), {"port": server.getsockname()[1]}
    real = kind.get_connection_params
    kind.get_connection_params = lambda self: real(self) | place
Order.objects.create()
connections.close_all()
close_unused()
"""
        told = python(code + stand_still)
        assert "become a gap" in told
        assert max_of() == 32

    def test_of_an_interpreter_without_daemons(self, python):
        """As of isolated subinterpreters since Python 3.12."""
        python(
            "import threading\n"
            "real = threading.Thread.__init__\n"
            "def make(self, *args, daemon=None, **options):\n"
            "    if daemon:\n"
            "        raise RuntimeError('daemon threads are disabled')\n"
            "    real(self, *args, **options)\n"
            "threading.Thread.__init__ = make\n"
            "Order.objects.create()"
        )
        assert max_of() == 1

    @pytest.mark.skipif(sys.version_info < (3, 13), reason="no subinterpreters")
    @pytest.mark.skipif(CHOSEN != "sqlite", reason="drivers refuse to be imported")
    def test_of_a_subinterpreter(self, python):
        python(
            "import _interpreters\n"
            "child = _interpreters.create('isolated')\n"
            f"code = {PREAMBLE + 'Order.objects.create()'!r}\n"
            "failure = _interpreters.run_string(child, code)\n"
            "assert failure is None, failure.formatted\n"
            "_interpreters.destroy(child)"
        )
        assert max_of() == 1

    def test_an_error_of_a_return_is_shown(self, python):
        assert "TypeError" in python(
            "import sys; from django_hilo.counters import returning\n"
            "sys.stderr = sys.stdout\n"
            "Order.objects.create(); returning.return_range = None\n"
        )

    def test_nothing_is_asked_of_the_database_without_ranges(self, python):
        python(
            "from django.db.backends.base.base import BaseDatabaseWrapper as W\n"
            "import os\n"
            "def fail(self): os._exit(3)\n"
            "W.connect = fail\n"
        )


class TestFork:
    CODE = """
import os, sys
from django.db import connections, transaction
from django_hilo.generator import next_number
first = [next_number(Order) for _ in range(3)]
with transaction.atomic():
    next_number(Order)
connections.close_all()
reader, writer = os.pipe()
if os.fork() == 0:
    numbers = [next_number(Order) for _ in range(40)]
    os.write(writer, repr(numbers).encode())
    {end}
mine = [next_number(Order) for _ in range(40)]
os.wait()
theirs = eval(os.read(reader, 65536))
assert not set(first + mine) & set(theirs), (first, mine, theirs)
print(len(set(first + mine + theirs)))
"""

    def test_the_child_inherits_no_range(self, python):
        assert python(self.CODE.replace("{end}", "os._exit(0)")) == "83"

    def test_a_child_that_ends_normally_returns_what_is_its_own(self, python):
        assert python(self.CODE.replace("{end}", "sys.exit()")) == "83"

    def test_a_child_that_no_hook_has_seen(self, python):
        """Some servers fork in C, without Python's hooks."""
        code = "import ctypes\n" + self.CODE.replace("{end}", "os._exit(0)")
        code = code.replace("os.fork()", "ctypes.PyDLL(None).fork()")
        assert python(code) == "83"

    def test_a_child_born_while_a_thread_holds_the_locks(self, python):
        """Those of signals too: of ours, and of Django's that we listen to."""
        code = """
import os, threading
from contextlib import ExitStack
from django.core.signals import request_finished, request_started, setting_changed
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_save
from django_hilo._allocation import memory
from django_hilo._database import own_connection as own
from django_hilo._allocation.find import resolve
from django_hilo.generator import next_number
next_number(Order)
from django_hilo.signals import range_reserved
def receive(**kwargs): pass
range_reserved.connect(receive)
counter = memory.current().memory(resolve(Order).key)
held, go_on = threading.Event(), threading.Event()
signals = range_reserved, connection_created, pre_save, post_migrate
signals += request_started, request_finished, setting_changed
def hold():
    with counter.locked(), ExitStack() as stack:
        for signal in signals:
            stack.enter_context(signal.lock)
        held.set(); go_on.wait()
thread = threading.Thread(target=hold); thread.start(); held.wait()
connections.close_all()
child = os.fork()
if child == 0:
    for signal in request_started, request_finished, setting_changed, post_migrate:
        signal.has_listeners(object())
    Order.objects.create(pk=f"orders/{next_number(Order)}-A")
    connections.close_all()
    os._exit(0)
print(os.waitpid(child, 0)[1])
go_on.set(); thread.join()
"""
        assert (
            python("import warnings; warnings.simplefilter('ignore')\n" + code) == "0"
        )

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="its locks end with the process")
    @pytest.mark.parametrize("end", ["SIGKILL", "SIGSTOP"])
    def test_a_lost_process_holds_the_row_for_less_than_others_wait(self, python, end):
        """Killed while a forked child shares its socket, or stopped: no end is seen."""
        victim = """
import os, signal, sys
from django.conf import settings
from django.db import connections
from django_hilo.counters import reservation as counter
from django_hilo.generator import next_number
def end_here(issuer):  # between the lock and the commit
    os.close(1); os.close(2)
    with connections[sys.argv[3]].cursor() as cursor:
        cursor.execute(sys.argv[4])
        idle = cursor.fetchone()[0]
    child = os.fork()
    if child == 0:
        signal.pause()
    os.write(int(sys.argv[1]), f"{os.getpid()} {child} {idle}".encode())
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
counter.new_ticket = end_here
settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 5}
next_number("orders")
"""
        # On MariaDB a reservation has a connection of its own.
        limit = {
            "postgres": ["default", "SHOW idle_in_transaction_session_timeout"],
            "mariadb": ["default:hilo", "SELECT @@idle_transaction_timeout"],
            "mysql": ["default:hilo", "SELECT @@wait_timeout"],
        }[CHOSEN]
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + victim, str(writer), end, *limit],
            cwd=PROJECT,
            env=child_environment(),
            pass_fds=[writer],
        )
        os.close(writer)
        *told, idle = os.read(reader, 100).decode().split()
        os.close(reader)
        pids = [int(pid) for pid in told]
        try:
            assert idle in ("2500ms", "3"), "half of its LOCK_TIMEOUT"
            assert next_number("orders") == 1
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            process.wait()

    def test_multiprocessing(self, python, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import multiprocessing, sys\n"
            "import django; django.setup()\n"
            "from django.db import connections\n"
            "from tests.apps.records.models import Order\n"
            "def work():\n"
            "    print(Order.objects.create().pk, flush=True)\n"
            "if __name__ == '__main__':\n"
            "    Order.objects.create(); connections.close_all()\n"
            "    context = multiprocessing.get_context(sys.argv[1])\n"
            "    for _ in range(2):\n"
            "        process = context.Process(target=work)\n"
            "        process.start(); process.join()\n"
            "        assert process.exitcode == 0\n"
        )
        for method in ("fork", "spawn"):
            subprocess.run(
                [sys.executable, script, method],
                cwd=PROJECT,
                env={**child_environment(), "PYTHONPATH": str(PROJECT)},
                check=True,
                timeout=LONGEST,
            )
        # The first process's range stays out while its children live: 2 ranges of 32
        # are gaps but for what each child gave back.
        assert Order.objects.count() == 6
        assert max_of() <= 32 + 2 + 32 + 2


@pytest.mark.skipif(CHOSEN != "postgres", reason="a role with a connection limit")
def test_where_no_second_connection_can_be_had(python):
    """An error, never a range in the caller's transaction; its own work is kept."""
    role = f"hilo_limited_{os.getpid()}"
    execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
    execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    code = f"""
from django.conf import settings
from django.db import connections, transaction
from django_hilo.exceptions import ConcurrencyError
settings.HILO = {{**settings.HILO, "RETRY_FOR": 0.3}}
connections["default"].settings_dict["USER"] = {role!r}
with transaction.atomic():
    Order.objects.create(id="orders/9-B")
    try:
        Order.objects.create()
    except ConcurrencyError as error:
        print("too many connections" in str(error))
settings.HILO = {{**settings.HILO, "RETRY_FOR": 120}}  # the server ends others late
print(*Order.objects.values_list("pk", flat=True), Order.objects.create().pk)
"""
    try:
        assert python(code) == "True\norders/9-B orders/1-A"
    finally:
        execute(f"DROP OWNED BY {role}")
        execute(f"DROP ROLE {role}")
