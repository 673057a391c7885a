"""Commands that a test waits for."""

import subprocess
from typing import Any

from tests.support.patience import LONGEST


def run(
    *command: object, expect: int = 0, timeout: float = LONGEST, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command that must end with this code; return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done
