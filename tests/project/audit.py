"""Ask the advisory service: ``python -m tests.project.audit``.

It is asked about the pinned packages. Fails for a known vulnerability. Where it cannot
be asked, it says so and does not fail: a build must not depend on a service of others.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.patience import LONGEST

PINNED = sorted((Path(__file__).parents[2] / "requirements").glob("*.txt"))


def ask(file: Path) -> list[dict[str, Any]] | None:
    """Return what is known of each package of a file, None where nobody answered."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner=off"]
    done = subprocess.run(
        [*command, "--format=json", "--no-deps", "--disable-pip", "-r", str(file)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        print(f"{file.name}: nobody answered. {done.stderr.strip()[-300:]}")
        return None
    return found


def report(file: Path, packages: list[dict[str, Any]]) -> bool:
    """Print what is known; return whether nothing is wrong."""
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    wrong = [each for each in packages if each.get("vulns")]
    asked = len(packages) - len(skipped)
    print(f"{file.name}: {asked} packages asked about, {len(wrong)} vulnerable.")
    if skipped:
        print(f"  NOT KNOWN to the service, so nothing is known: {', '.join(skipped)}")
    for each in wrong:
        ids = ", ".join(vulnerability["id"] for vulnerability in each["vulns"])
        print(f"  {each['name']} {each['version']}: {ids}")
    return not wrong


def main() -> int:
    """Ask about each file of requirements; 1 where a package is vulnerable."""
    sound = True
    for file in PINNED:
        packages = ask(file)
        if packages is not None:
            sound &= report(file, packages)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
