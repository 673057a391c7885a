"""The parts of an id as SQL of PostgreSQL: a small pattern, and functions for the rest.

A single pattern with all bounds in it takes more than ten times as long. Indexes and
generated columns contain this SQL, so a change of it would no longer find them.
"""

from __future__ import annotations

import string
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

_TAG = f"'-{string.ascii_uppercase}'"
_COLLECTION = f"'{string.ascii_letters}{string.digits}_-'"


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    """Return the SQL of a part of ``text``, whose parameters are ``params``.

    Raises KeyError for a part that the database cannot compute.
    """
    start = _start(text)
    if part == "number":
        value = f"({_digits(text)})::bigint"
    elif part == "collection":
        length = f"LENGTH({start}) - LENGTH({_without_collection(text)})"
        value = f"LEFT({start}, {length})"
    elif part == "node_tag":
        value = f"SUBSTR({_document(text)}, LENGTH({_untagged(text)}) + 2)"
    elif part == "anchor":
        return after_dollar(text, params, f"STRPOS({_bytewise(text)}, '$')", "LENGTH")
    else:
        raise KeyError(part)
    sql = f"CASE WHEN {_is_id(text)} THEN {value} END"
    return sql, params * sql.count(text)


def _is_id(text: str) -> str:
    digits, rest = _digits(text), _without_collection(text)
    return " AND ".join(
        [
            f"{_bytewise(text)} ~ {_SHAPE}",
            f"LENGTH({digits}) <= {MAX_WIDTH}",
            f"LPAD({digits}, {MAX_WIDTH}, '0') <= '{MAX_NUMBER}'",
            f"LENGTH({_start(text)}) - LENGTH({rest}) <= {MAX_COLLECTION_LENGTH}",
            # With the separator.
            f"LENGTH({rest}) <= {MAX_SERVER_PREFIX_LENGTH + 1}",
        ]
    )


def _bytewise(text: str) -> str:
    # Some collations refuse patterns and searches, others order digits their own way.
    return f'({text}) COLLATE "C"'


def _document(text: str) -> str:
    """Return the SQL of the text before the anchor."""
    return f"SPLIT_PART({_bytewise(text)}, '$', 1)"


def _untagged(text: str) -> str:
    return f"RTRIM({_document(text)}, {_TAG})"


def _start(text: str) -> str:
    """Return the SQL of the text before the number."""
    return f"RTRIM({_untagged(text)}, '{string.digits}')"


def _digits(text: str) -> str:
    return f"SUBSTR({_untagged(text)}, LENGTH({_start(text)}) + 1)"


def _without_collection(text: str) -> str:
    """Return the SQL of the separator and the server prefix."""
    return f"LTRIM({_start(text)}, {_COLLECTION})"


def _shape() -> str:
    """Return the pattern of an id but for the bounds of its parts, as a literal."""
    code_point = "\\\\u{:04x}"
    without = not_in_prefixes(code_point)
    return (
        f"E'^[A-Za-z][A-Za-z0-9_-]*[{separators(code_point)}]"
        f"(?:[^{without}$|]*[^{without}$|0-9])?"
        # "." takes newlines, and "$" is the end of the text only.
        f"0*[1-9][0-9]*(?:-[A-Z]{{1,4}})?(?:[$].+)?$'"
    )


_SHAPE = _shape()
