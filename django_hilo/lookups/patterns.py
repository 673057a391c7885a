"""Characters of `identifiers`' grammar, for the patterns of servers."""

from __future__ import annotations

from django_hilo.identifiers import SEPARATORS

# What Python's \s and the control characters are, as code points: the servers' own
# classes differ with locale and version. NUL is not in it: PostgreSQL has none.
NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def separators(code_point: str) -> str:
    """Return the separators as a server writes code points, for a class."""
    return "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))
