"""What sources, storages and rules have in common: they are values."""

from __future__ import annotations

from typing import Any


class Value:
    """Compares and shows itself by what it was made of; never changes."""

    def _parts(self) -> dict[str, Any]:
        return {
            name: part for name, part in vars(self).items() if not name.startswith("_")
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part!r}" for name, part in self._parts().items())
        return f"{type(self).__name__}({parts})"
