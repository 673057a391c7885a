"""Rollbacks that a caller writes in SQL, and the savepoints that they go back to."""

from __future__ import annotations

import re

# Before and after a statement. A comment is matched in one way only, or many of them
# would take for ever.
_COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*(?:\n|\Z)"
_START = rf"(?:\s|{_COMMENT})*"
_END = rf"(?:\s|;|{_COMMENT})*"
_MAY_MATTER = re.compile("SAVEPOINT|ROLLBACK|RELEASE|ABORT", re.IGNORECASE)
_ROLLBACK = re.compile(
    rf"{_START}(?:ROLLBACK|ABORT)(?:\s+(?:WORK|TRANSACTION))?{_END}", re.IGNORECASE
)
_OF_SAVEPOINT = re.compile(
    rf"{_START}(?P<verb>SAVEPOINT|RELEASE|ROLLBACK(?:\s+(?:WORK|TRANSACTION))?\s+TO)"
    rf"(?:\s+SAVEPOINT)?\s+[\"'`\[]?(?P<name>\w+)[\"'`\]]?{_END}",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    rf"(?:\A|;){_START}(?:(?P<savepoint>SAVEPOINT)|ROLLBACK|ABORT)\b", re.IGNORECASE
)


class Savepoints:
    """The savepoints that were made since a transaction has marks.

    Each is noted with the number of the last mark before it. An older savepoint has no
    mark before it.
    """

    def __init__(self) -> None:
        self._made: list[tuple[str, int]] = []

    @property
    def last_mark(self) -> int:
        """The number of the last mark before the newest savepoint, or 0."""
        return self._made[-1][1] if self._made else 0

    def note(self, sql: str, newest: int) -> tuple[int, bool] | None:
        """Note a statement; ``newest`` is the number of the newest mark.

        If it may have rolled something back, return the number of the last mark that
        is still good, and whether the later ones certainly were rolled back.
        """
        if not _MAY_MATTER.search(sql):
            return None
        if _ROLLBACK.fullmatch(sql):
            return 0, True
        if statement := _OF_SAVEPOINT.fullmatch(sql):
            verb, name = statement["verb"].upper(), statement["name"].lower()
            if verb != "SAVEPOINT":
                return self._end(name, is_release=verb == "RELEASE")
            self._made.append((name, newest))
        elif found := _INSIDE.search(sql):
            # One of several statements, or a text: nobody knows what it does.
            if not found["savepoint"]:
                return 0, False
            self._made.append(("", newest))
        return None

    def _end(self, name: str, is_release: bool) -> tuple[int, bool] | None:
        names = [each for each, _ in self._made]
        if name not in names:
            # It is older than all marks, unless it is one whose name nobody knows.
            self._made = []
            return None if is_release else (0, "" not in names)
        place = len(names) - 1 - names[::-1].index(name)
        if is_release:
            del self._made[place:]
            return None
        del self._made[place + 1 :]
        return self.last_mark, True
