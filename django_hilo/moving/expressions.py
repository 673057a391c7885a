"""SQL expressions without parameters, for DDL and for plans, by database."""

import string
from typing import Any

from django_hilo._database.dialects import database_of
from django_hilo.fields.lookups import mariadb, mysql, postgresql, sqlite
from django_hilo.identifiers import MAX_WIDTH, IdFormat


class Sql:
    """Quotes names and values for a connection, and writes expressions over texts."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.vendor: str = connection.vendor

    def name(self, name: str) -> str:
        quoted: str = self.connection.ops.quote_name(name)
        return quoted

    def value(self, value: object) -> str:
        self.connection.ensure_connection()
        quoted: str = self.connection.schema_editor().quote_value(value)
        return quoted

    def text(self, column: str) -> str:
        """Return a column as a text."""
        if self.vendor == "mysql":
            return f"CAST({column} AS CHAR)"
        return f"CAST({column} AS text)"

    def compose(self, digits: str, format: IdFormat) -> str:
        """Return the id whose number has these digits, a text."""
        start, end = self.value(format.start), self.value(format.end)
        padded = self._padded(digits, format.width)
        if self.vendor == "mysql":
            return f"CONCAT({start}, {padded}, {end})"
        return " || ".join([start, padded, *([end] if format.end else [])])

    def _padded(self, digits: str, width: int) -> str:
        if not width:
            return digits
        if self.vendor == "sqlite":
            zeros = "0" * MAX_WIDTH
            return f"substr('{zeros}' || {digits}, -max({width}, length({digits})))"
        length = f"CHAR_LENGTH({digits})"
        return f"LPAD({digits}, GREATEST({width}, {length}), '0')"

    def digits(self, text: str) -> str:
        """Return the number of an id as text; in half the time of `number_or_null`."""
        if self.vendor == "postgresql":
            document = f"SPLIT_PART({text} COLLATE \"C\", '$', 1)"
            found = f"SUBSTRING({document} FROM '([0-9]+)(?:-[A-Z]{{1,4}})?$')"
            return f"CAST(CAST({found} AS bigint) AS text)"
        if self.vendor == "mysql":
            document = f"SUBSTRING_INDEX({text}, '$', 1)"
            pattern = "'(?-i)[0-9]+(?=(-[A-Z]{1,4})?$)'"
            found = f"REGEXP_SUBSTR({document}, {pattern})"
            return f"CAST(CAST({found} AS UNSIGNED) AS CHAR)"
        document = f"SUBSTR({text}, 1, INSTR({text} || '$', '$') - 1)"
        untagged = f"RTRIM({document}, '-{string.ascii_uppercase}')"
        start = f"RTRIM({untagged}, '{string.digits}')"
        found = f"SUBSTR({untagged}, LENGTH({start}) + 1)"
        return f"CAST(CAST({found} AS integer) AS text)"

    def number_or_null(self, text: str) -> str:
        """Return the number of an id, NULL for a text that is none."""
        if self.vendor == "postgresql":
            return postgresql.sql_of("number", text)[0]
        if self.vendor == "mysql":
            lookups = mariadb if database_of(self.connection) == "mariadb" else mysql
            sql, patterns = lookups.sql_of("number", text)
            return str(sql % tuple(map(self.value, patterns)))
        return sqlite.sql_of("number", text)[0]

    def is_digits(self, text: str) -> str:
        """Return whether a text is digits and nothing else."""
        if self.vendor == "postgresql":
            return f"{text} COLLATE \"C\" ~ '^[0-9]+$'"
        if self.vendor == "mysql":
            return f"{text} REGEXP '^[0-9]+$'"
        return f"({text} <> '' AND {text} NOT GLOB '*[^0-9]*')"
