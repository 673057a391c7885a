"""Ask the advisory service about all pins: ``python -m tests.project.audit``.

Fails for a known vulnerability. If nobody answers, it says so and does not fail: a
build must not depend on a service of others.
"""

import re
import subprocess
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

from tests.support.patience import LONGEST

REQUIREMENTS = Path(__file__).parents[2] / "requirements"


def pinned() -> list[list[str]]:
    """Return all pins, each list with one version of a package: Pythons differ."""
    versions: dict[str, set[str]] = {}
    for file in REQUIREMENTS.glob("*.txt"):
        pin = r"^([\w.-]+)(?:\[.*\])?(==[^\s;]+)"
        for name, version in re.findall(pin, file.read_text(), re.M):
            versions.setdefault(name, set()).add(name + version)
    columns = zip_longest(*map(sorted, versions.values()))
    return [[pin for pin in column if pin] for column in columns]


def is_sound(pins: list[str]) -> bool:
    """Print what is known of the packages; return whether nothing is wrong."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner=off"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(pins))
        file.flush()
        done = subprocess.run(
            [*command, "--no-deps", "--disable-pip", "-r", file.name],
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
    print(f"{len(pins)} packages asked about.\n{done.stdout}", end="")
    # A vulnerability is in the table that it prints.
    if done.returncode and not done.stdout:
        print(f"Nobody answered. {done.stderr.strip()[-300:]}")
        return True
    return done.returncode == 0


if __name__ == "__main__":
    found = [is_sound(pins) for pins in pinned()]
    sys.exit(not all(found))
