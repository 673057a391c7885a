"""Processes of Python that need no second to start: forked from one that has imported.

That one has imported what Django's commands need: no settings, no models, nothing of a
project. In all else a child is like a new process: it gets the folder, environment,
arguments and streams of its caller, and ends as Python ends.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import IO, Any

from tests.support.patience import LONGEST

PROJECT = Path(__file__).parents[2]
MANAGE = "from django.core.management import *; execute_from_command_line()"
# What can be imported without settings, with what it imports in turn.
LOADED = """
    asyncio concurrent.futures.thread csv doctest multiprocessing pytest unittest.mock
    django.contrib.admin.checks django.contrib.auth.checks django.contrib.auth.hashers
    django.contrib.messages.storage.fallback django.contrib.sessions.backends.db
    django.core.cache.backends.locmem django.core.handlers.wsgi django.core.mail
    django.core.management.commands.check django.core.management.commands.dumpdata
    django.core.management.commands.loaddata django.core.management.commands.runserver
    django.core.management.commands.makemigrations
    django.core.management.commands.migrate django.core.management.commands.shell
    django.core.serializers.json django.core.servers.basehttp
    django.db.backends.sqlite3.base django.db.migrations.autodetector
    django.db.models.functions django.forms django.template.context_processors
    django.template.loader_tags django.test.runner django.urls django.views.debug
    django.views.generic django.views.i18n django.views.static
    django_hilo.checks django_hilo.converters django_hilo.fields.lookups
    django_hilo.generator django_hilo.managers django_hilo.moving django_hilo.sharding
    rest_framework.exceptions rest_framework.fields rest_framework.permissions
"""


class Popen:
    """A process that is started as `subprocess` starts ``python -W error ...``.

    It is killed when this process ends.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        cwd: str | Path = PROJECT,
        env: Mapping[str, str] = os.environ,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = True,
    ) -> None:
        assert command[0] == sys.executable and text
        self.args = [str(part) for part in command]
        self.stdin: Any = None
        self.stdout: Any = None
        self.returncode: int | None = None
        self._errors: IO[str] | None = None
        self._talk = socket.socket(socket.AF_UNIX)
        self._talk.connect(_server())
        self._told = self._talk.makefile()
        theirs = []
        try:
            for number, given in enumerate((stdin, stdout, stderr)):
                theirs.append(self._stream(number, given, theirs))
            socket.send_fds(self._talk, [b"."], theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        task = self.args[1:], str(cwd), dict(env)
        self._talk.sendall(json.dumps(task).encode() + b"\n")
        self.pid = int(self._told.readline())

    def _stream(self, number: int, given: Any, before: list[int]) -> int:
        if given == PIPE and number == 2:
            self._errors = _file()
            return os.dup(self._errors.fileno())
        if given == PIPE:
            reader, writer = os.pipe()
            if number:
                self.stdout = open(reader, encoding="utf-8")  # noqa: SIM115 - the caller closes it
                return writer
            self.stdin = open(writer, "w", encoding="utf-8")  # noqa: SIM115 - as well
            return reader
        if given == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if given == STDOUT:
            return os.dup(before[1])
        if given is None:
            return os.dup(number)
        return os.dup(given if isinstance(given, int) else given.fileno())

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        if self.returncode is None and select.select([self._talk], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float = LONGEST) -> int:
        """Wait for its end; return its exit code, or the negative signal."""
        if self.returncode is None:
            if not select.select([self._talk], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._told.readline())
            self._told.close()
            self._talk.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(
        self, input: str | None = None, timeout: float = LONGEST
    ) -> tuple[str, str]:
        """Write the last input, if any; return the rest of the output, and errors."""
        if self.stdout.closed:  # it was called before
            return "", ""
        with suppress(BrokenPipeError), self.stdin:
            self.stdin.write(input or "")
        with self.stdout:
            printed = self.stdout.read()
        self.wait(timeout)
        with self._errors or nullcontext():
            return printed, _text(self._errors) if self._errors else ""


def run(
    *command: str | Path,
    expect: int = 0,
    input: str = "",
    stderr: int = PIPE,
    timeout: float = LONGEST,
    **place: Any,
) -> subprocess.CompletedProcess[str]:
    """Run Python as `commands.run` runs a command."""
    with _file(input) as given, _file() as out, _file() as errors:
        place["stderr"] = errors if stderr == PIPE else stderr
        process = Popen(command, stdin=given, stdout=out, **place)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        printed = [_text(each) for each in (out, errors)]
        assert process.returncode == expect, "".join(printed)
        return subprocess.CompletedProcess(process.args, expect, *printed)


def _file(text: str = "") -> IO[str]:
    file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - a process has it
    file.write(text)
    file.seek(0)
    return file


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


@cache
def _server() -> str:
    """Start the process that forks; return where it is to be asked."""
    folder = tempfile.TemporaryDirectory(prefix="hilo-warm-")
    address = f"{folder.name}/socket"
    ours = "DJANGO_SETTINGS_MODULE", "HILO_TEST_NAMES"
    server = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", __name__, address],
        cwd=PROJECT,
        env={name: value for name, value in os.environ.items() if name not in ours},
        stdin=PIPE,
        stdout=PIPE,
    )
    assert server.stdin and server.stdout
    assert server.stdout.readline() == b"ready\n"
    _started.append((server, folder))
    return address


_started: list[Any] = []


def end() -> None:
    """End the process that forks, if there is one; else it ends with this one."""
    _server.cache_clear()
    while _started:
        server, folder = _started.pop()
        server.communicate()
        folder.cleanup()


def _serve(address: str) -> list[str] | None:
    """Fork for each caller until nobody is there; return the command in a child."""
    for name in LOADED.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        print("ready", flush=True)
        while 0 not in select.select([listening, 0], [], [])[0]:
            caller, _ = listening.accept()
            if not os.fork():
                listening.close()
                return _attend(caller)
            caller.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    return None


def _attend(caller: socket.socket) -> list[str]:
    """Fork the child; return its command there, and here report its end."""
    _, streams, _, _ = socket.recv_fds(caller, 1, 3)
    with caller.makefile() as lines:
        command, folder, environment = json.loads(lines.readline())
    pid = os.fork()
    if not pid:
        caller.close()
        for number, each in enumerate(streams):
            os.dup2(each, number)
            os.close(each)
        _take_place(folder, environment)
        return command
    for each in (0, 1, 2, *streams):
        os.close(each)
    caller.sendall(f"{pid}\n".encode())
    end = os.pidfd_open(pid)
    if end not in select.select([caller, end], [], [])[0]:  # nobody waits any more
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _take_place(folder: str, environment: dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Where the tests are a background job, Ctrl-C would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    at_once = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - until the end
    for number, name in enumerate(("stdout", "stderr"), 1):
        errors = "strict" if number == 1 else "backslashreplace"
        file = os.fdopen(number, "w", closefd=False, encoding="utf-8", errors=errors)
        file.reconfigure(line_buffering=at_once or number == 2)
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = ["", *filter(None, paths), *_INSTALLED]
    importlib.invalidate_caches()


def _code_of(command: list[str]) -> Any:
    """Return what a command of Python is to run, and set its arguments."""
    if command[:2] == ["-W", "error"]:
        command = command[2:]
    file, *arguments = command
    if file in ("-c", "-m"):
        assert file == "-c" or arguments[0] == "django"
        code = arguments[0] if file == "-c" else MANAGE
        sys.argv[:] = [file if file == "-c" else "django", *arguments[1:]]
        return compile(code, "<string>", "exec")
    sys.argv[:] = command
    sys.path[0] = str(Path(file).resolve().parent)
    sys.modules["__main__"].__file__ = file
    return compile(Path(file).read_text(), file, "exec")


# Where Python's own modules are, and those that are installed.
_OURS = {str(PROJECT), "", *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
_INSTALLED = [path for path in sys.path if path not in _OURS]

if __name__ == "__main__":
    asked = _serve(sys.argv[1])
    if asked is not None:
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(_code_of(asked), sys.modules["__main__"].__dict__)
