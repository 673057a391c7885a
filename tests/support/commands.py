"""Commands that a test waits for."""

import subprocess
from pathlib import Path
from typing import Any

from tests.support.patience import LONGEST

PROJECT = Path(__file__).parents[2]


def output_of(*command: object, expect: int = 0, **options: Any) -> str:
    """Run a program to its end, which must be as expected; return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        **{"cwd": PROJECT, **options},
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout.strip()
