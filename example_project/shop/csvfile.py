"""CSV files whose errors name the line. Nothing in here knows of Django."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

MAX_INTEGER = 2**31 - 1

_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,8}(\.[0-9]{1,2})?")


class WrongValueError(ValueError):
    """What is wrong in a row."""


class WrongFileError(ValueError):
    """Why a file cannot be read at all; ``line`` is 0 where no line is to blame."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Row:
    """The texts of a row by column, and the line where it starts.

    The methods read one value and raise `WrongValueError`. ``NULL`` and an empty text
    are no value.
    """

    line: int
    texts: dict[str, str]

    def text(self, column: str, longest: int) -> str:
        """Return a text, "" where there is none."""
        text = self._given(column) or ""
        if len(text) > longest:
            raise WrongValueError(
                f"{column} has {len(text)} characters; {longest} are allowed"
            )
        if "\x00" in text:
            raise WrongValueError(f"{column} holds a NUL character")
        return text

    def required_text(self, column: str, longest: int) -> str:
        """Return a text of at least one character."""
        return self.text(column, longest) or self._missing(column)

    def code(self, column: str) -> str:
        """Return a code of upper-case letters and digits."""
        text = self.required_text(column, 10)
        # Databases differ in whether abc and ABC are the same key.
        if not re.fullmatch("[A-Z0-9]+", text):
            raise WrongValueError(
                f"{column} {text!r} must be upper-case letters and digits"
            )
        return text

    def whole(self, column: str, least: int = 1) -> int:
        """Return a whole number that fits an integer column."""
        text = self._given(column) or self._missing(column)
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= MAX_INTEGER:
            raise WrongValueError(
                f"{column} {text!r} is no whole number from {least} to {MAX_INTEGER}"
            )
        return int(text)

    def decimal(self, column: str, most: Decimal | None = None) -> Decimal:
        """Return a number of at least 0, with at most two decimals."""
        text = self._given(column) or self._missing(column)
        if not _DECIMAL.fullmatch(text) or (most is not None and Decimal(text) > most):
            raise WrongValueError(
                f"{column} {text!r} is no number from 0 to {most or 99999999} with at "
                f"most 2 decimals"
            )
        return Decimal(text)

    def day(self, column: str) -> date | None:
        """Return the day of a date such as ``1996-07-04 00:00:00.000``."""
        text = self._given(column)
        if text is None:
            return None
        try:
            return datetime.fromisoformat(text).date()
        except ValueError:
            raise WrongValueError(
                f"{column} {text!r} is no date such as 1996-07-04"
            ) from None

    def required_day(self, column: str) -> date:
        """Return the day of a date that must be there."""
        return self.day(column) or self._missing(column)

    def flag(self, column: str) -> bool:
        """Return whether the value is 1, not 0."""
        text = self._given(column) or self._missing(column)
        if text not in ("0", "1"):
            raise WrongValueError(f"{column} {text!r} is neither 0 nor 1")
        return text == "1"

    def _given(self, column: str) -> str | None:
        text = self.texts[column].strip()
        return None if text in ("", "NULL") else text

    def _missing(self, column: str) -> NoReturn:
        raise WrongValueError(f"{column} is missing")


def read_rows(
    path: Path, columns: Sequence[str]
) -> Iterator[tuple[int, Row | WrongValueError]]:
    """Yield the rows of a file with the lines where they start.

    Other columns than those named are allowed and dropped. A row with too few or too
    many values comes as an error; a file that is no such file raises `WrongFileError`.
    """
    reader = csv.reader(io.StringIO(_text_of(path), newline=""), strict=True)
    try:
        header = _checked_header(next(reader, []), columns)
        for values in reader:
            if not values:
                continue  # an empty line
            # A quoted value may hold line ends.
            line = reader.line_num - sum(value.count("\n") for value in values)
            try:
                texts = dict(zip(header, _fitted(values, len(header)), strict=True))
                yield line, Row(line, texts)
            except WrongValueError as error:
                yield line, error
    except csv.Error as error:
        raise WrongFileError(f"is not CSV: {error}", reader.line_num) from None


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise WrongFileError("the file is missing") from None
    except OSError as error:
        raise WrongFileError(f"cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WrongFileError("is not UTF-8; save the file as UTF-8", line) from None


def _checked_header(header: list[str], columns: Sequence[str]) -> list[str]:
    if not header:
        raise WrongFileError("the file is empty; its first line must name the columns")
    missing = [column for column in columns if column not in header]
    if missing:
        raise WrongFileError(
            f"the header names no column {', '.join(missing)}; it must name "
            f"{', '.join(columns)}",
            1,
        )
    twice = [column for column in columns if header.count(column) > 1]
    if twice:
        raise WrongFileError(f"the header names {', '.join(twice)} twice", 1)
    return header


def _fitted(values: list[str], count: int) -> list[str]:
    """Return as many values as there are columns, else raise `WrongValueError`.

    Northwind's addresses hold commas without quotes: ``24, place Kléber``. Only there
    a comma is followed by a space.
    """
    joined = values[:1]
    for value in values[1:]:
        if value.startswith(" "):
            joined[-1] += f",{value}"
        else:
            joined.append(value)
    if len(joined) == count:
        return joined
    if len(values) != count:
        raise WrongValueError(
            f"has {len(joined)} values; the header names {count} columns"
        )
    # The rest of another value, or one too few: text would land in wrong columns.
    raise WrongValueError(
        "has a value that starts with a space; remove the space, and put values that "
        "hold a comma in quotes"
    )
