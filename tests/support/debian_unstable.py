"""Programs of Debian's unstable suite, for servers that Debian's stable one lacks.

They are unpacked once a machine, into the user's cache folder, and run from there with
their own libraries; nothing is installed.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "django-hilo"
ROOT = CACHE / "debian-unstable"
_PACKAGES = ("mysql-server-core",)


def prepare() -> None:
    """Unpack the suite, unless that is done: a minute, and 600 MB.

    Needs debootstrap, which runs as root only.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ROOT.exists():
            return
        part = ROOT.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        done = subprocess.run(
            [
                *("debootstrap", "--variant=minbase"),
                *(f"--include={','.join(_PACKAGES)}", "sid", str(part), *_mirror()),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-30:])
        part.rename(ROOT)


def _mirror() -> list[str]:
    """Return the mirror that apt is set up with, if it says which that is."""
    command = ("apt-get", "indextargets", "--format=$(REPO_URI)", "Label: Debian")
    found = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return found[:1]


def command(program: str, *arguments: str) -> list[str]:
    """Return what runs a program of the suite, by the libraries of the suite."""
    libraries = ROOT / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    path = ROOT / "usr/sbin" / program
    return [str(loader), "--library-path", str(libraries), str(path), *arguments]
