"""Programs of Debian's unstable suite, for those that Debian's stable one lacks.

They are unpacked once a machine, into the user's cache folder, and run from there with
their own libraries; nothing is installed. debootstrap unpacks them, as root only.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "django-hilo"
ROOT = CACHE / "debian-unstable"


def prepare() -> None:
    """Unpack MySQL's server, unless that is done: a minute, and 600 MB."""
    _unpack(ROOT, ["mysql-server-core"])


def python(version: str) -> Path:
    """Return a Python, unpacked unless that is done: half a minute, and 370 MB.

    It makes virtual environments, and compiles extensions with the machine's compiler.
    """
    name = f"python{version}"
    root = CACHE / f"debian-unstable-{name}"

    def adapt(unpacked: Path) -> None:
        _wrap(root, unpacked, f"usr/bin/{name}")
        # venv would install the machine's pip, which may be too old for this Python.
        for names in (unpacked / "usr/lib" / name).glob("_sysconfigdata*.py"):
            wheels = "/usr/share/python-wheels/'"
            text = names.read_text().replace(f"'{wheels}", f"'{root}{wheels}")
            names.write_text(text)
        # Debian's own includes this one, by a path that only an installed one has.
        headers = unpacked / "usr/include"
        shutil.copy(headers / "x86_64-linux-gnu" / name / "pyconfig.h", headers / name)

    _unpack(root, [name, f"{name}-venv", f"lib{name}-dev"], adapt)
    return root / "usr/bin" / name


def mariadb() -> Path:
    """Return the root of MariaDB, unpacked unless that is done: 300 MB."""
    root = CACHE / "debian-unstable-mariadb"

    def adapt(unpacked: Path) -> None:
        for program in ("sbin/mariadbd", "bin/my_print_defaults", "bin/resolveip"):
            _wrap(root, unpacked, f"usr/{program}")

    _unpack(root, ["mariadb-server-core", "mariadb-client-core"], adapt)
    return root


def php(package: str) -> list[str]:
    """Return what runs PHP with a package, unpacked unless that is done: 320 MB."""
    root = CACHE / f"debian-unstable-{package}"

    def adapt(unpacked: Path) -> None:
        # Where Debian's autoloaders say where others are, they mean an installed one.
        for file in (unpacked / "usr/share/php").rglob("autoload.php"):
            text = file.read_text().replace("'/usr/share/", f"'{root}/usr/share/")
            file.write_text(text)

    _unpack(root, ["php-cli", "php-pgsql", package], adapt)
    # Not "php", a link that leads to the machine's own.
    [program] = (root / "usr/bin").glob("php*.*[0-9]")
    [extensions] = (root / "usr/lib/php").glob("20*")
    names = ("ctype", "mbstring", "pdo", "tokenizer", "pdo_pgsql")
    settings = [
        f"include_path={root / 'usr/share/php'}",
        f"extension_dir={extensions}",
        *(f"extension={name}" for name in names),
        "display_errors=stderr",
    ]
    options = [f"-d{setting}" for setting in settings]
    # -n: the machine's php.ini is for another PHP.
    return command(str(program.relative_to(root)), "-n", *options, root=root)


def _wrap(root: Path, unpacked: Path, name: str) -> None:
    """Put a script in place of a program, for scripts that call it by its name."""
    program = unpacked / name
    program.rename(f"{program}-binary")
    loader, *rest = command(f"{name}-binary", root=root)
    # Python finds its folder, or its virtual environment, by the name it is run as.
    program.write_text(
        f'#!/bin/sh\nexec {loader} --argv0 "$0" {shlex.join(rest)} "$@"\n'
    )
    program.chmod(0o755)


def _unpack(
    root: Path, packages: list[str], adapt: Callable[[Path], None] = lambda _: None
) -> None:
    """Unpack packages with all that they need, unless that is done.

    `adapt` changes them in the folder that it is given, before that becomes `root`.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if root.exists():
            return
        part = root.with_name(f"{root.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        done = subprocess.run(
            [
                *("debootstrap", "--variant=minbase"),
                *(f"--include={','.join(packages)}", "sid", str(part), *_mirror()),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-30:])
        adapt(part)
        part.rename(root)


def _mirror() -> list[str]:
    """Return the mirror that apt is set up with, if it says which that is."""
    command = ("apt-get", "indextargets", "--format=$(REPO_URI)", "Label: Debian")
    found = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return found[:1]


def command(program: str, *arguments: str, root: Path = ROOT) -> list[str]:
    """Return what runs a program of the suite, by the libraries of the suite."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    path = root / program
    return [str(loader), "--library-path", str(libraries), str(path), *arguments]


if __name__ == "__main__":
    print(python(sys.argv[1]))
