"""Commands that a test waits for."""

import subprocess
from pathlib import Path
from typing import Any

from tests.support.patience import LONGEST

PROJECT = Path(__file__).parents[2]


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
