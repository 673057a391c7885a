"""Parts of SQL that several databases share.

The module of each database has ``sql_of(part, text, params=())``: the SQL of a part of
``text``, whose parameters are ``params``. It raises KeyError for a part that the
database cannot compute. Indexes and generated columns contain this SQL, so a change of
it would no longer find them.
"""

from typing import Any

from django_hilo.identifiers import MAX_NUMBER, MAX_WIDTH, SEPARATORS

# SQL, and its parameters.
Sql = tuple[str, tuple[Any, ...]]

# Python's \s and the control characters as code points, because the classes of
# servers differ with locale and version. Without NUL, which PostgreSQL cannot store.
_NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def character_classes(code_point: str) -> tuple[str, str]:
    """Return the separators, and what server prefixes do not contain.

    Each is for a character class; ``code_point`` formats a character of it.
    """
    signs = "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))
    ranges = ("-".join(map(code_point.format, bounds)) for bounds in _NO_PREFIX)
    return signs, "".join(ranges)


def after_dollar(text: str, params: tuple[Any, ...], place: str, length: str) -> Sql:
    """Return the SQL of the anchor, which follows the dollar sign at ``place``."""
    # Compare lengths: to some collations a space equals an empty text.
    sql = (
        f"CASE WHEN {place} BETWEEN 2 AND {length}({text}) - 1 "
        f"THEN SUBSTR({text}, {place} + 1) END"
    )
    return sql, params * sql.count(text)


def number_of(digits: str, trimmed: str, length: str, kind: str) -> str:
    """Return the SQL of the number that digits are, NULL if it is 0 or over 2^63-1.

    ``trimmed`` are the digits without leading zeros.
    """
    return (
        f"CASE WHEN {length}({trimmed}) BETWEEN 1 AND {MAX_WIDTH - 1}"
        f" OR ({length}({trimmed}) = {MAX_WIDTH} AND {trimmed} <= '{MAX_NUMBER}')"
        f" THEN CAST({digits} AS {kind}) END"
    )
