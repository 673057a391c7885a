"""Lookups on ids: ``id__number`` filters and orders by the number, on every database.

What an id is, `identifiers.parse` says; the patterns here say the same to servers.
"""

from __future__ import annotations

from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.fields import HiLoField
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    SEPARATORS,
    parse,
)

SQLITE_FUNCTION = "django_hilo_number"

# What Python's \s and the control characters are, as code points: the servers' own
# classes differ with locale and version. NUL is not in it: PostgreSQL has none.
_NO_PREFIX = (
    *((0x01, 0x20), (0x7F, 0x7F), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


class Number(models.Transform):
    """The number of an id; NULL for a text that is no id."""

    lookup_name = "number"
    function = SQLITE_FUNCTION
    output_field = models.BigIntegerField()

    def as_postgresql(
        self, compiler: Any, connection: BaseDatabaseWrapper, **kwargs: Any
    ) -> tuple[str, Any]:
        lhs, params = compiler.compile(self.lhs)
        # The pattern is no parameter: an index on the expression must show the same
        # text. COLLATE: some collations refuse patterns.
        pattern = _POSTGRESQL.replace("\\", r"\\").replace("'", "''")
        pattern = pattern.replace("%", "%%")
        sql = f"""(substring(({lhs}) COLLATE "C" from E'{pattern}'))::bigint"""
        return sql, params

    def as_mysql(
        self, compiler: Any, connection: BaseDatabaseWrapper, **kwargs: Any
    ) -> tuple[str, Any]:
        lhs, params = compiler.compile(self.lhs)
        # A parameter, as backslashes in a literal depend on NO_BACKSLASH_ESCAPES.
        found = f"REGEXP_SUBSTR({lhs}, %s)"
        return f"CAST(NULLIF({found}, '') AS SIGNED)", (*params, _MARIADB)


def register() -> None:
    """Add the lookups to `HiLoField`, and their function to SQLite's connections."""
    HiLoField.register_lookup(Number)
    connection_created.connect(
        _on_connection_created, dispatch_uid="django_hilo.lookups"
    )
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _add_function(connection)


def _on_connection_created(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    _add_function(connection)


def _add_function(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "sqlite":
        create: Any = connection.connection.create_function
        create(SQLITE_FUNCTION, 1, _number_of, deterministic=True)


def _number_of(value: Any) -> int | None:
    try:
        return parse(value).number
    except InvalidDocumentId:
        return None


def _up_to(limit: int) -> str:
    """Return a pattern of the numbers from 1 to a limit, which a cast then takes."""
    digits = str(limit)
    choices = [f"[1-9][0-9]{{0,{len(digits) - 2}}}", digits]
    for place, digit in enumerate(digits):
        least, most = (0 if place else 1), int(digit) - 1
        if most >= least:
            rest = len(digits) - place - 1
            choices.append(f"{digits[:place]}[{least}-{most}][0-9]{{{rest}}}")
    return "|".join(choices)


def _start(code_point: str) -> str:
    """Return the pattern of what stands before the number."""
    without = "".join(
        f"{code_point.format(low)}-{code_point.format(high)}"
        for low, high in _NO_PREFIX
    )
    separators = "".join(code_point.format(ord(sign)) for sign in sorted(SEPARATORS))
    most = MAX_SERVER_PREFIX_LENGTH - 1
    return (
        f"^[A-Za-z][A-Za-z0-9_-]{{0,{MAX_COLLECTION_LENGTH - 1}}}"
        f"[{separators}](?:[^{without}$|]{{0,{most}}}[^{without}$|0-9])?"
    )


_POSTGRESQL = (
    _start("\\u{:04x}")
    + f"({_up_to(MAX_NUMBER)})"
    # "." takes newlines, and "$" is the end of the text only.
    + r"(?:-[A-Z]{1,4})?(?:[$].+)?$"
)
# (?...) overrules the collation, which would ignore case, and default_regex_flags.
_MARIADB = (
    "(?s-imxU)"
    + _start("\\x{{{:x}}}").replace("[^", "[^\\x{0}")
    + f"\\K(?:{_up_to(MAX_NUMBER)})"
    + r"(?=(?:-[A-Z]{1,4})?(?:[$][^\x{0}]+)?\z)"
)
