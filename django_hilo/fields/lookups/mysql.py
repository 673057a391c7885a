r"""The parts of an id as SQL of MySQL, by regular expressions of ICU, without ``\K``.

The first match is an id, or NULL; the second a part of it, or as long as one.
"""

from typing import Any

from django_hilo.fields.lookups import mariadb
from django_hilo.fields.lookups.mariadb import COLLECTION, DIGITS, END, PREFIX, TAG
from django_hilo.fields.lookups.patterns import Sql


def sql_of(part: str, text: str, params: tuple[Any, ...] = ()) -> Sql:
    if part == "anchor":
        return mariadb.sql_of(part, text, params)
    if part in {"start", "number_at_end"}:
        return mariadb.at_end(part, f"CONVERT({text} USING utf8mb4)", params)
    sql, pattern = _PARTS[part]
    # In the definition of an index a column is of another character set than a literal.
    found = f"REGEXP_SUBSTR(REGEXP_SUBSTR(CONVERT({text} USING utf8mb4), %s), %s)"
    before = params * sql.count("{text}")
    return sql.format(text=text, found=found), (*before, *params, _ID, pattern)


# (?...) overrules the collation, which would ignore case.
_ID = f"(?s-imx)^{COLLECTION}{PREFIX}{DIGITS}{END}"
_NUMBER_ENDS = "(?=[$]|\\z)"
# Parts of the text itself compare as its column does.
_PARTS = {
    "number": ("CAST({found} AS SIGNED)", f"[0-9]+(?={TAG}{_NUMBER_ENDS})"),
    "collection": ("LEFT({text}, CHAR_LENGTH({found}))", f"^{COLLECTION}"),
    # With the last digit and the "-".
    "node_tag": (
        "RIGHT(SUBSTRING_INDEX({text}, '$', 1), CHAR_LENGTH({found}) - 2)",
        f"[0-9]{TAG}{_NUMBER_ENDS}",
    ),
}
