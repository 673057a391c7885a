"""A function ``child`` of a measurement, in a new process on the same databases."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

from benchmarks.databases import configure


def run(module: str, *arguments: str) -> str:
    """Call ``benchmarks.<module>.child(*arguments)``; return what it prints."""
    command = [sys.executable, "-m", "benchmarks.child", module, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    configure()
    import_module(f"benchmarks.{sys.argv[1]}").child(*sys.argv[2:])
