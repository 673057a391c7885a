r"""The parts of an id as SQL of MariaDB, by regular expressions.

A match goes from ``\K``, or the start, to a lookahead. Generated columns contain this
SQL, so a change of it would no longer find them.
"""

from __future__ import annotations

from typing import Any

from django_hilo.fields.lookups.patterns import (
    Sql,
    after_dollar,
    not_in_prefixes,
    separators,
)
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    MAX_WIDTH,
)


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    """Return the SQL of a part of ``text``, whose parameters are ``params``.

    Raises KeyError for a part that the database cannot compute.
    """
    if part == "anchor":
        # It compares bytes. LOCATE() asks the collation, which may know other dollars.
        place = f"CHAR_LENGTH(SUBSTRING_INDEX({text}, '$', 1)) + 1"
        return after_dollar(text, params, place, "CHAR_LENGTH")
    sql, pattern = _PARTS[part]
    # A parameter, as backslashes in a literal depend on NO_BACKSLASH_ESCAPES.
    return sql % f"NULLIF(REGEXP_SUBSTR({text}, %s), '')", (*params, pattern)


def _digits() -> str:
    """Return a pattern of numbers with and without leading zeros, up to the limit."""
    limit = str(MAX_NUMBER)
    choices = [f"[0-9]{{1,{MAX_WIDTH - 1}}}", limit]
    for place, digit in enumerate(limit):
        if digit != "0":
            lower = f"{limit[:place]}[0-{int(digit) - 1}]"
            choices.append(f"{lower}[0-9]{{{MAX_WIDTH - place - 1}}}")
    return f"(?!0+(?![0-9]))(?:{'|'.join(choices)})"


def _prefix() -> str:
    """Return the pattern of the separator and a server prefix."""
    code_point = "\\x{{{:x}}}"
    without = "\\x{0}" + not_in_prefixes(code_point)
    most = MAX_SERVER_PREFIX_LENGTH - 1
    return f"[{separators(code_point)}](?:[^{without}$|]{{0,{most}}}[^{without}$|0-9])?"


# (?...) overrules the collation, which would ignore case, and default_regex_flags.
_START = f"(?s-imxU)^[A-Za-z][A-Za-z0-9_-]{{0,{MAX_COLLECTION_LENGTH - 1}}}"
_PREFIX = _prefix()
_DIGITS = _digits()
_TAG = "(?:-[A-Z]{1,4})?"
_END = r"(?:[$][^\x{0}]+)?\z"

_PARTS = {
    "number": (
        "CAST(%s AS SIGNED)",
        f"{_START}{_PREFIX}\\K{_DIGITS}(?={_TAG}{_END})",
    ),
    "collection": ("%s", f"{_START}(?={_PREFIX}{_DIGITS}{_TAG}{_END})"),
    # With the last digit and the "-": MariaDB returns "" if nothing is found.
    "node_tag": (
        "SUBSTR(%s, 3)",
        f"{_START}{_PREFIX}(?={_DIGITS}{_TAG}{_END})[0-9]*\\K[0-9]{_TAG}",
    ),
}
