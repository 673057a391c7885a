r"""The parts of an id as SQL of MariaDB, by regular expressions.

A match goes from ``\K``, or the start, to a lookahead.
"""

from typing import Any

from django_hilo import identifiers
from django_hilo.fields.lookups.patterns import (
    Sql,
    after_dollar,
    character_classes,
    number_of,
)
from django_hilo.identifiers import MAX_WIDTH


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    if part == "anchor":
        # It compares bytes. LOCATE() asks the collation, which may know other dollars.
        place = f"CHAR_LENGTH(SUBSTRING_INDEX({text}, '$', 1)) + 1"
        return after_dollar(text, params, place, "CHAR_LENGTH")
    if part in {"start", "number_at_end"}:
        return at_end(part, text, params)
    sql, pattern = _PARTS[part]
    # A parameter, as backslashes in a literal depend on NO_BACKSLASH_ESCAPES.
    return sql % f"NULLIF(REGEXP_SUBSTR({text}, %s), '')", (*params, pattern)


def at_end(part: str, text: str, params: tuple[Any, ...]) -> Sql:
    """Return the SQL of the digits at the end as a number, or of what is before."""
    digits = f"REGEXP_SUBSTR({text}, %s)"
    number = number_of(
        digits, f"TRIM(LEADING '0' FROM {digits})", "CHAR_LENGTH", "SIGNED"
    )
    # MySQL finds NULL where there is no digit.
    length = f"CHAR_LENGTH({text}) - COALESCE(CHAR_LENGTH({digits}), 0)"
    sql = f"LEFT({text}, {length})" if part == "start" else number
    values = (*params, _AT_END) if params else (_AT_END,)
    found: tuple[Any, ...] = ()
    for piece in sql.split(digits)[:-1]:
        found += params * piece.count(text) + values
    return sql, found + params * sql.rpartition(digits)[2].count(text)


_AT_END = "[0-9]+\\z"


def _digits(limit: str) -> str:
    """Return a pattern of numbers with and without leading zeros, up to the limit."""
    choices = [f"[0-9]{{1,{MAX_WIDTH - 1}}}", limit]
    for place, digit in enumerate(limit):
        if digit != "0":
            lower = f"{limit[:place]}[0-{int(digit) - 1}]"
            choices.append(f"{lower}[0-9]{{{MAX_WIDTH - place - 1}}}")
    return f"(?!0+(?![0-9]))(?:{'|'.join(choices)})"


_LENGTH, _MOST = identifiers.MAX_COLLECTION_LENGTH, identifiers.MAX_SERVER_PREFIX_LENGTH
_SEPARATORS, _WITHOUT = character_classes("\\x{{{:x}}}")
_WITHOUT = "\\x{0}" + _WITHOUT + "$|"
# Of an id, without the flags before them; MySQL has the same.
COLLECTION = f"[A-Za-z][A-Za-z0-9_-]{{0,{_LENGTH - 1}}}"
# The separator and a server prefix.
PREFIX = f"[{_SEPARATORS}](?:[^{_WITHOUT}]{{0,{_MOST - 1}}}[^{_WITHOUT}0-9])?"
DIGITS = _digits(str(identifiers.MAX_NUMBER))
TAG = "(?:-[A-Z]{1,4})?"
END = f"{TAG}(?:[$][^\\x{{0}}]+)?\\z"

# (?...) overrules the collation, which would ignore case, and default_regex_flags.
_START = f"(?s-imxU)^{COLLECTION}"
_PARTS = {
    "number": ("CAST(%s AS SIGNED)", f"{_START}{PREFIX}\\K{DIGITS}(?={END})"),
    "collection": ("%s", f"{_START}(?={PREFIX}{DIGITS}{END})"),
    # With the last digit and the "-": MariaDB returns "" if nothing is found.
    "node_tag": (
        "SUBSTR(%s, 3)",
        f"{_START}{PREFIX}(?={DIGITS}{END})[0-9]*\\K[0-9]{TAG}",
    ),
}
