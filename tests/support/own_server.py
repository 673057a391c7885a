"""A server that tests start in a folder of its own, kill, and start again."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE
from tests.support.ports import free_port

DEBIAN_POSTGRES = sorted(
    Path("/usr/lib/postgresql").glob("[0-9]*/bin"),
    key=lambda folder: int(folder.parent.name),
)


def missing_programs(*wanted: str) -> list[str]:
    """Return the programs that this machine lacks."""
    path = os.pathsep.join([*map(str, DEBIAN_POSTGRES), os.environ.get("PATH", "")])
    return [name for name in wanted if shutil.which(name, path=path) is None]


class Server:
    """A server that is killed, and started again on the same data."""

    # Servers refuse to run as root; "": this one does not.
    system_user = ""
    # The signal that it gets when the process that started it ends, however that ends.
    ends_with = "KILL"
    programs: tuple[str, ...]
    log = "output.log"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return self.folder.name

    def command(self) -> list[str]:
        """Return what starts the server."""
        raise NotImplementedError

    def install(self) -> None:
        """Make the data of an empty server."""
        raise NotImplementedError

    def execute(self, *statements: str) -> Any:
        """Run statements on one new connection; return the rows of the last."""
        raise NotImplementedError

    def create(self) -> None:
        """Make the server of an empty folder, and wait until it answers."""
        self.make_folder()
        self.install()
        self.start()

    def make_folder(self) -> None:
        """Make the folder, which the system user owns."""
        self.folder.mkdir()
        if os.getuid() == 0 and self.system_user:
            shutil.chown(self.folder, self.system_user, self.system_user)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.launch()
        give_up_at = time.monotonic() + PATIENCE
        while not self.answers():
            assert time.monotonic() < give_up_at, self.last_lines()
            if not self.is_running:
                # The memory of a killed server may need a moment to go.
                self.launch()
            time.sleep(0.1)

    def launch(self, *options: str) -> None:
        """Start the server, and do not wait for it."""
        with (self.folder / "output.log").open("ab") as output:
            self.process = subprocess.Popen(
                [*self._as_system_user(), *self.command(), *options],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _as_system_user(self) -> list[str]:
        command = ["setpriv", f"--pdeathsig={self.ends_with}"]
        user = self.system_user
        if os.getuid() == 0 and user:
            command += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return command

    def run(self, *command: object) -> None:
        """Run a program as the system user."""
        done = subprocess.run(
            [*self._as_system_user(), *map(str, command)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def answers(self) -> bool:
        """Whether the server takes queries."""
        try:
            self.execute("SELECT 1")
        except Exception:
            return False
        return True

    def send(self, number: int) -> None:
        """Send a signal to the server."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill all processes of the server with SIGKILL, as a power cut would."""
        assert self.process is not None
        self.send(signal.SIGSTOP)  # it starts no more children
        for pid in [self.process.pid, *_children(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Shut the server down; kill it if it does not obey."""
        if self.process is None or not self.is_running:
            return
        self.send(signal.SIGCONT)
        self.send(how)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait_for(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds, while the server runs."""
        give_up_at = time.monotonic() + PATIENCE
        while not holds():
            assert self.is_running, f"{self} ended.\n{self.last_lines()}"
            late = f"{self} is not {what} after {PATIENCE} s.\n{self.last_lines()}"
            assert time.monotonic() < give_up_at, late
            time.sleep(0.05)

    def last_lines(self) -> str:
        """Return the end of the server's log."""
        log = self.folder / self.log
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-30:])


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for child in path.read_text().split()
    ]
