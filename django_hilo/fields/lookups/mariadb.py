r"""The parts of an id as SQL of MariaDB, by regular expressions.

A match goes from ``\K``, or the start, to a lookahead. Generated columns contain this
SQL, so a change of it would no longer find them.
"""

from __future__ import annotations

from django_hilo.fields.lookups.patterns import NO_PREFIX, separators
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    MAX_WIDTH,
)

Call = tuple[str, str]


def number(text: str) -> Call:
    """Return the SQL of the number, and its parameter after those of the text."""
    return f"CAST({_found(text)} AS SIGNED)", _NUMBER


def collection(text: str) -> Call:
    """Return the SQL of the collection, as `number`."""
    return _found(text), _COLLECTION


def node_tag(text: str) -> Call:
    """Return the SQL of the node tag, as `number`."""
    return f"SUBSTR({_found(text)}, 3)", _DIGIT_AND_TAG


def place_of_dollar(text: str) -> str:
    """Return the SQL of the position of the first dollar sign."""
    # It compares bytes. LOCATE() asks the collation, which may know other dollars.
    return f"CHAR_LENGTH(SUBSTRING_INDEX({text}, '$', 1)) + 1"


def _found(text: str) -> str:
    # A parameter, as backslashes in a literal depend on NO_BACKSLASH_ESCAPES.
    return f"NULLIF(REGEXP_SUBSTR({text}, %s), '')"


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
    without = "\\x{0}" + "".join(
        f"{code_point.format(low)}-{code_point.format(high)}" for low, high in NO_PREFIX
    )
    most = MAX_SERVER_PREFIX_LENGTH - 1
    return f"[{separators(code_point)}](?:[^{without}$|]{{0,{most}}}[^{without}$|0-9])?"


# (?...) overrules the collation, which would ignore case, and default_regex_flags.
_START = f"(?s-imxU)^[A-Za-z][A-Za-z0-9_-]{{0,{MAX_COLLECTION_LENGTH - 1}}}"
_PREFIX = _prefix()
_DIGITS = _digits()
_TAG = "(?:-[A-Z]{1,4})?"
_END = r"(?:[$][^\x{0}]+)?\z"

_NUMBER = f"{_START}{_PREFIX}\\K{_DIGITS}(?={_TAG}{_END})"
_COLLECTION = f"{_START}(?={_PREFIX}{_DIGITS}{_TAG}{_END})"
# With the last digit and the "-": MariaDB returns "" if nothing is found.
_DIGIT_AND_TAG = f"{_START}{_PREFIX}(?={_DIGITS}{_TAG}{_END})[0-9]*\\K[0-9]{_TAG}"
