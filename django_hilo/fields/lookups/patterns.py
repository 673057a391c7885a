"""Parts of SQL that several databases share."""

from __future__ import annotations

from typing import Any

from django_hilo.identifiers import SEPARATORS

# SQL, and its parameters.
Sql = tuple[str, tuple[Any, ...]]

# Python's \s and the control characters as code points, because the classes of
# servers differ with locale and version. Without NUL, which PostgreSQL cannot store.
_NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def separators(code_point: str) -> str:
    """Return the separators for a character class; ``code_point`` formats each."""
    return "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))


def not_in_prefixes(code_point: str) -> str:
    """Return what server prefixes do not contain, as `separators` does."""
    return "".join(
        f"{code_point.format(low)}-{code_point.format(high)}"
        for low, high in _NO_PREFIX
    )


def after_dollar(text: str, params: tuple[Any, ...], place: str, length: str) -> Sql:
    """Return the SQL of the anchor, which follows the dollar sign at ``place``."""
    # Compare lengths: to some collations a space equals an empty text.
    sql = (
        f"CASE WHEN {place} BETWEEN 2 AND {length}({text}) - 1 "
        f"THEN SUBSTR({text}, {place} + 1) END"
    )
    return sql, params * sql.count(text)
