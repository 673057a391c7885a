"""Characters of the grammar of ids, for the regular expressions of servers."""

from __future__ import annotations

from django_hilo.identifiers import SEPARATORS

# Python's \s and the control characters as code points, because the classes of
# servers differ with locale and version. Without NUL, which PostgreSQL cannot store.
NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def separators(code_point: str) -> str:
    """Return the separators for a character class; ``code_point`` formats each."""
    return "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))
