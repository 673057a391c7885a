"""What `identifiers.parse` says, as patterns that servers read.

Each finds one part of an id, and nothing in a text that is no id.
"""

from __future__ import annotations

from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    MAX_WIDTH,
    SEPARATORS,
)

# What Python's \s and the control characters are, as code points: the servers' own
# classes differ with locale and version. NUL is not in it: PostgreSQL has none.
_NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def _digits() -> str:
    """Return a pattern of numbers with and without leading zeros, up to the limit."""
    limit = str(MAX_NUMBER)
    choices = [f"[0-9]{{1,{MAX_WIDTH - 1}}}", limit]
    for place, digit in enumerate(limit):
        if digit != "0":
            lower = f"{limit[:place]}[0-{int(digit) - 1}]"
            choices.append(f"{lower}[0-9]{{{MAX_WIDTH - place - 1}}}")
    return f"(?!0+(?![0-9]))(?:{'|'.join(choices)})"


def _prefix(code_point: str, nul: str = "") -> str:
    """Return the pattern of the separator and a server prefix."""
    without = nul + "".join(
        f"{code_point.format(low)}-{code_point.format(high)}"
        for low, high in _NO_PREFIX
    )
    separators = "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))
    most = MAX_SERVER_PREFIX_LENGTH - 1
    return f"[{separators}](?:[^{without}$|]{{0,{most}}}[^{without}$|0-9])?"


_COLLECTION = f"[A-Za-z][A-Za-z0-9_-]{{0,{MAX_COLLECTION_LENGTH - 1}}}"
_DIGITS = _digits()
_TAG = "(?:-[A-Z]{1,4})?"


class PostgreSQL:
    """The part is the group in parentheses."""

    _PREFIX = _prefix("\\u{:04x}")
    # "." takes newlines, and "$" is the end of the text only.
    _END = "(?:[$].+)?$"

    NUMBER = f"^{_COLLECTION}{_PREFIX}({_DIGITS}){_TAG}{_END}"
    COLLECTION = f"^({_COLLECTION}){_PREFIX}{_DIGITS}{_TAG}{_END}"
    # With the "-", as a group that is left out would be NULL.
    DASH_AND_TAG = f"^{_COLLECTION}{_PREFIX}{_DIGITS}({_TAG}){_END}"


class MariaDB:
    r"""The part is what is found: from ``\K``, or the start, to a lookahead."""

    # This overrules the collation, which would ignore case, and default_regex_flags.
    _START = f"(?s-imxU)^{_COLLECTION}"
    _PREFIX = _prefix("\\x{{{:x}}}", nul="\\x{0}")
    _END = r"(?:[$][^\x{0}]+)?\z"

    NUMBER = f"{_START}{_PREFIX}\\K{_DIGITS}(?={_TAG}{_END})"
    COLLECTION = f"{_START}(?={_PREFIX}{_DIGITS}{_TAG}{_END})"
    # With the last digit and the "-", as nothing found is an empty text there.
    DIGIT_AND_TAG = f"{_START}{_PREFIX}(?={_DIGITS}{_TAG}{_END})[0-9]*\\K[0-9]{_TAG}"
