"""The parts of an id as SQL of PostgreSQL: a small pattern, and functions for the rest.

A single pattern with all bounds in it takes more than ten times as long.
"""

import string
from typing import Any

from django_hilo.fields.lookups.patterns import (
    Sql,
    after_dollar,
    character_classes,
    number_of,
)
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    MAX_WIDTH,
)

_TAG = f"'-{string.ascii_uppercase}'"
_COLLECTION = f"'{string.ascii_letters}{string.digits}_-'"
_SEPARATORS, _WITHOUT = character_classes("\\\\u{:04x}")
# An id but for the bounds of its parts, as a literal. "." takes newlines, and "$" is
# the end of the text only.
_SHAPE = (
    f"E'^[A-Za-z][A-Za-z0-9_-]*[{_SEPARATORS}]"
    f"(?:[^{_WITHOUT}$|]*[^{_WITHOUT}$|0-9])?"
    f"0*[1-9][0-9]*(?:-[A-Z]{{1,4}})?(?:[$].+)?$'"
)


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    # Some collations refuse patterns and searches, others order digits their own way.
    bytewise = f'({text}) COLLATE "C"'
    if part == "anchor":
        return after_dollar(text, params, f"STRPOS({bytewise}, '$')", "LENGTH")
    if part in {"start", "number_at_end"}:
        start = f"RTRIM({bytewise}, '{string.digits}')"
        digits = f"SUBSTR({bytewise}, LENGTH({start}) + 1)"
        number = number_of(digits, f"LTRIM({digits}, '0')", "LENGTH", "bigint")
        sql = start if part == "start" else number
        return sql, params * sql.count(text)
    document = f"SPLIT_PART({bytewise}, '$', 1)"
    untagged = f"RTRIM({document}, {_TAG})"
    # The text before the number.
    start = f"RTRIM({untagged}, '{string.digits}')"
    digits = f"SUBSTR({untagged}, LENGTH({start}) + 1)"
    # The separator and the server prefix.
    rest = f"LTRIM({start}, {_COLLECTION})"
    collection_length = f"LENGTH({start}) - LENGTH({rest})"
    value = {
        "number": f"({digits})::bigint",
        "collection": f"LEFT({start}, {collection_length})",
        "node_tag": f"SUBSTR({document}, LENGTH({untagged}) + 2)",
    }[part]
    sql = (
        f"CASE WHEN {bytewise} ~ {_SHAPE}"
        f" AND LENGTH({digits}) <= {MAX_WIDTH}"
        f" AND LPAD({digits}, {MAX_WIDTH}, '0') <= '{MAX_NUMBER}'"
        f" AND {collection_length} <= {MAX_COLLECTION_LENGTH}"
        f" AND LENGTH({rest}) <= {MAX_SERVER_PREFIX_LENGTH + 1}"
        f" THEN {value} END"
    )
    return sql, params * sql.count(text)
