"""What each measurement is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.databases import MARIADB, POSTGRES, SQLITE


@dataclass(frozen=True)
class Bench:
    """The databases of a run, and how long it may take."""

    aliases: list[str]
    is_quick: bool = False
    seed: int = 1
    # Where files go that measurements write themselves; None: nowhere.
    folder: Path | None = None

    @property
    def server(self) -> str:
        """The database that projects run on: PostgreSQL, or what there is."""
        return next(
            alias for alias in (POSTGRES, MARIADB, SQLITE) if alias in self.aliases
        )

    def has(self, alias: str) -> bool:
        return alias in self.aliases

    def scaled(self, full: int, quick: int) -> int:
        """Return how many, of a whole run or of a quick one."""
        return quick if self.is_quick else full

    def seconds(self, full: float) -> float:
        """Return how long rounds may go on."""
        return full / 4 if self.is_quick else full
