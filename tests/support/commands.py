"""Commands that a test waits for."""

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.support import warm
from tests.support.patience import LONGEST

PROJECT = Path(__file__).parents[2]
# Without anything that a shell would change.
_PLAIN = re.compile(r"""python manage\.py( [\w.,/:=@-]+| "[^"$`\\!]*"| '[^']*')+""")


def run(
    *command: object, expect: int = 0, timeout: float = LONGEST, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, which must end with this code; return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=timeout,
        **{"cwd": PROJECT, **options},
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def output_of(*command: object, **options: Any) -> str:
    """Run a command; return its output without the white space around it."""
    return run(*command, **options).stdout.strip()


def at_a_terminal(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run what somebody enters in a folder; return both streams as they came."""
    place = {"cwd": folder, "env": environment}
    if _PLAIN.fullmatch(command):
        _, *arguments = shlex.split(command)
        done = warm.run(sys.executable, *arguments, stderr=subprocess.STDOUT, **place)
    else:
        done = run("bash", "-euc", f"exec 2>&1\n{command}", **place)
    return done.stdout


def told_by(name: str, *arguments: str, **options: Any) -> str:
    """Run a command of Django's in this process; return what it printed."""
    out = StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()
