"""How a value becomes an id, and an id a value again: by its number, or by a table.

The methods take and return SQL over the text of a column:

- ``forwards``: the id of a value. ``backwards``: the value of an id, as text.
- ``is_old``: whether it is a value to convert. ``is_new``: whether it is such an id.

A ``generic`` column contains ``str(key)``.
"""

from typing import NamedTuple

from django_hilo.identifiers import IdFormat
from django_hilo.moving.expressions import Sql


class Integers(NamedTuple):
    """33 becomes ``orders/33-A``: the number stays."""

    sql: Sql
    format: IdFormat

    def forwards(self, text: str, generic: bool) -> str:
        return self.sql.compose(text, self.format)

    def backwards(self, text: str, generic: bool) -> str:
        return self.sql.digits(text)

    def is_old(self, text: str, generic: bool) -> str:
        return self.sql.is_digits(text)

    def is_new(self, text: str, generic: bool) -> str:
        is_new = f"NOT ({self.sql.is_digits(text)})"
        if generic:
            # It holds whatever programs wrote.
            is_new += f" AND {self.sql.number_or_null(text)} IS NOT NULL"
        return is_new


class Mapped(NamedTuple):
    """A UUID and its id stand in one row of a table, which the way back reads."""

    sql: Sql
    table: str

    def forwards(self, text: str, generic: bool) -> str:
        return self._lookup("new_id", self._old(generic), text)

    def backwards(self, text: str, generic: bool) -> str:
        return self._lookup(self._old(generic), "new_id", text)

    def is_old(self, text: str, generic: bool) -> str:
        return self._is_in(self._old(generic), text)

    def is_new(self, text: str, generic: bool) -> str:
        return self._is_in("new_id", text)

    def _old(self, generic: bool) -> str:
        return "old_text" if generic else "old_id"

    def _lookup(self, wanted: str, known: str, text: str) -> str:
        return (
            f"(SELECT moved.{wanted} FROM {self.sql.name(self.table)} moved "
            f"WHERE moved.{known} = {text})"
        )

    def _is_in(self, known: str, text: str) -> str:
        return f"{text} IN (SELECT {known} FROM {self.sql.name(self.table)})"


Values = Integers | Mapped
