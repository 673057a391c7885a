"""Ids as text: ``collection separator [server prefix] number [-node tag] [$anchor]``.

An id can be read in only one way, because no part contains what starts the next: the
collection ends at the separator, the anchor starts at the first ``$``, the node tag is
upper-case letters after a ``-`` at the end, and the number is the digits before it.
"""

import re
import string
import unicodedata
from functools import lru_cache
from typing import Any, NamedTuple, Self

from django_hilo.exceptions import InvalidDocumentId

__all__ = [
    "ID_PATTERN",
    "MAX_NUMBER",
    "DocumentId",
    "parse",
]

MAX_NUMBER = 2**63 - 1
MAX_WIDTH = len(str(MAX_NUMBER))
MAX_COLLECTION_LENGTH = 100
MAX_SERVER_PREFIX_LENGTH = 32

# Each part of a pattern has bounds. Without them a route with several ids would try
# each end of one with each end of the next, for as long as a hostile URL likes.
_SIGN = r"[^\s$|/\x00-\x1f\x7f]"
_NUMBER = r"0{0,18}[1-9][0-9]{0,18}"
_TAG = r"-[A-Z]{1,4}"
# A collection and a separator, then the parts of a server prefix between slashes. None
# of these is a number: the id would end there.
_START = (
    r"[A-Za-z][A-Za-z0-9_-]{0,99}[!-#%-,./:-@\[-^`{}~]"
    rf"(?:(?!{_NUMBER}/|{_NUMBER}{_TAG}/){_SIGN}{{0,31}}/){{0,8}}"
)

# One id in a URL, for DRF's ``lookup_value_regex`` and other routes. It ends where the
# id does: orders/33-A in orders/33-A/lines. It leaves out server prefixes with a part
# that looks like a number (4/, 33-A/), anchors with a slash that do not end in a
# number, and more than 8 slashes in a prefix or 8 "$" in an id.
#
# It has no groups, because the readers of routes are simple. Parentheses count in
# character classes too, and a group may contain one other group only
# (django.contrib.admindocs, and so OpenAPI's paths).
ID_PATTERN = (
    rf"{_START}(?:{_SIGN}{{0,31}}[^\s$|/0-9\x00-\x1f\x7f])?{_NUMBER}(?:{_TAG})?"
    # The next slash tells ids from free text: two readings would take for ever.
    rf"(?:\$(?=[^$/]*/){_START}{_SIGN}{{0,50}}[0-9]-?[A-Z]{{0,4}}"
    r"|\$[^$/\x00]*){0,8}"
)

# Longer values are cut in messages, so that they cannot fill logs and answers.
_SHOWN = 60
_SHOWN_BITS = 200

# "_" and "-" are letters of collections, "|" and "$" have a meaning of their own.
SEPARATORS = frozenset(string.punctuation) - frozenset("_-|$")

_COLLECTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# A collection and the values of a series, which have signs that no collection has.
_SERIES = re.compile(r"[A-Za-z][A-Za-z0-9_-]*[.=][a-z0-9_./=-]*")
_NODE_TAG = re.compile(r"[A-Z]{1,4}")
_SERVER_PREFIX = re.compile(r"[^\s$|\x00-\x1f\x7f]*[^\s$|\x00-\x1f\x7f0-9]")
_BODY = re.compile(
    r"(?P<server_prefix>(?:.*[^0-9])?)(?P<number>[0-9]+)(?:-(?P<node_tag>[A-Z]{1,4}))?",
    re.DOTALL,
)


class DocumentId(NamedTuple):
    """The parts of an id; ``str()`` joins them and refuses what `parse` would.

    ``width`` is the number of digits if there are leading zeros (``orders/0042``: 4, at
    most 19), otherwise 0.
    """

    collection: str
    server_prefix: str
    number: int
    node_tag: str = ""
    anchor: str | None = None
    separator: str = "/"
    width: int = 0

    def __str__(self) -> str:
        check_collection(self.collection)
        check_separator(self.separator)
        check_server_prefix(self.server_prefix)
        check_number(self.number)
        check_node_tag(self.node_tag)
        check_digits(self.number, self.width)
        parts = (self.collection, self.separator, self.server_prefix, self.node_tag)
        text = IdFormat.of(*parts)._replace(width=self.width).text(self.number)
        return text if self.anchor is None else f"{text}${check_anchor(self.anchor)}"


def parse(text: str) -> DocumentId:
    """Read an id, so that ``str(parse(text)) == text``.

    Raises `InvalidDocumentId` with the reason for anything else.
    """
    if not isinstance(text, str):
        raise InvalidDocumentId(
            f"{shown(text)} is not an id: expected a str, got {type(text).__name__}."
        )
    return _parsed(str.__str__(text))  # a subclass may not be hashable


# An explicit id is read several times while its row is saved.
@lru_cache(maxsize=16)
def _parsed(text: str) -> DocumentId:
    document, dollar, anchor = text.partition("$")
    start = _COLLECTION.match(document)
    if start is None:
        raise InvalidDocumentId(
            f"{shown(text)} is not an id: it must start with a collection, such as "
            f"orders/33-A."
        )
    collection, separator = start[0], document[start.end() : start.end() + 1]
    body = _BODY.fullmatch(document, start.end() + 1)
    if not separator or body is None:
        raise InvalidDocumentId(
            f"{shown(text)} is not an id: the collection {shown(collection)} must be "
            f"followed by a separator and a number, as in orders/33-A."
        )
    digits = body["number"]
    if len(digits) > MAX_WIDTH:
        raise InvalidDocumentId(
            f"{shown(text)} is not an id: its number has more than {MAX_WIDTH} digits."
        )
    result = DocumentId(
        collection,
        body["server_prefix"],
        int(digits),
        body["node_tag"] or "",
        anchor if dollar else None,
        separator,
        len(digits) if digits.startswith("0") else 0,
    )
    try:
        str(result)
    except InvalidDocumentId as error:
        raise InvalidDocumentId(f"{shown(text)} is not an id: {error}") from None
    return result


def parse_or_none(text: Any) -> DocumentId | None:
    """Return the parts of an id, or None for any other text or value."""
    try:
        return parse(text)
    except InvalidDocumentId:
        return None


def parse_alike(text: Any) -> DocumentId | None:
    """Return the parts of an id that MariaDB or MySQL may take for equal to a text.

    Their collations ignore case, accents, signs without a width, and spaces at the end.
    """
    found = parse_or_none(text)
    if found is None and isinstance(text, str):
        ascii = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        found = parse_or_none(ascii.rstrip(" ").upper())
    return found


def family_of(id: DocumentId) -> tuple[str, str, str]:
    """Return what ids of one counter share: collection, server prefix and node tag."""
    return id.collection.lower(), id.server_prefix, id.node_tag


def shown(value: object) -> str:
    """Return a value as messages show it: quoted, and cut where it is long."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"  # of some, Python prints none
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def anchor_in(text: str) -> str | None:
    """Return the text after the first ``$`` that is not the first character, else None.

    This is the anchor of an id, and of any other text: RavenDB's ids may be anything.
    """
    return text.partition("$")[2] or None if text.find("$") > 0 else None


def counter_key(collection: str, node_tag: str) -> str:
    """Return the primary key of a counter: ``orders/A``, ``orders/`` untagged."""
    return f"{collection.lower()}/{node_tag}"


class IdFormat(NamedTuple):
    """The texts before and after the number of ids, without an anchor."""

    start: str
    end: str = ""
    # Digits of a number, with leading zeros; 0: as many as it has.
    width: int = 0

    @classmethod
    def of(
        cls,
        collection: str,
        separator: str,
        server_prefix: str = "",
        node_tag: str = "",
    ) -> Self:
        """Return the format of ids of these parts, which are checked already."""
        end = f"-{node_tag}" if node_tag else ""
        return cls(f"{collection}{separator}{server_prefix}", end)

    def text(self, number: int) -> str:
        """Return the id of a number."""
        start, end, width = self
        # A format of its own would take longer than all the rest.
        return f"{start}{number:0{width}}{end}" if width else f"{start}{number}{end}"

    def texts(self, low: int, high: int) -> list[str]:
        """Return the ids of the numbers ``low`` to ``high``."""
        if self.width:
            return list(map(self.text, range(low, high + 1)))
        start, end = self.start, self.end
        return [f"{start}{number}{end}" for number in range(low, high + 1)]


def check_collection(collection: str) -> str:
    """Return a collection inside the grammar, else raise `InvalidDocumentId`."""
    if not _COLLECTION.fullmatch(collection):
        raise InvalidDocumentId(
            f"The collection {shown(collection)} must start with a letter A-Z or a-z "
            f"and contain only letters, digits, '_' and '-'."
        )
    if len(collection) > MAX_COLLECTION_LENGTH:
        raise InvalidDocumentId(
            f"The collection {shown(collection)} has {len(collection)} characters; at "
            f"most {MAX_COLLECTION_LENGTH} are allowed."
        )
    return collection


def is_counter_name(name: str) -> bool:
    """Whether a name is that of a series' counter, such as ``invoices.7.2026``."""
    return len(name) <= MAX_COLLECTION_LENGTH and bool(_SERIES.fullmatch(name))


def check_counter_name(name: str) -> str:
    """Return the name of a counter: a collection, or of a series; or raise."""
    return name if is_counter_name(name) else check_collection(name)


def check_separator(separator: str) -> str:
    """Return a separator that is inside the grammar, else raise `InvalidDocumentId`."""
    if separator not in SEPARATORS:
        raise InvalidDocumentId(
            f"The separator {shown(separator)} must be one ASCII punctuation character "
            f"other than '_', '-', '|' and '$'; the default is '/'."
        )
    return separator


def check_server_prefix(server_prefix: str) -> str:
    """Return a server prefix inside the grammar, else raise `InvalidDocumentId`."""
    if server_prefix and not _SERVER_PREFIX.fullmatch(server_prefix):
        raise InvalidDocumentId(
            f"The server prefix {shown(server_prefix)} must not end in a digit "
            f"(example: 'NorthServer/') or contain a space, '$' or '|'."
        )
    if len(server_prefix) > MAX_SERVER_PREFIX_LENGTH:
        raise InvalidDocumentId(
            f"The server prefix {shown(server_prefix)} has {len(server_prefix)} "
            f"characters; at most {MAX_SERVER_PREFIX_LENGTH} are allowed."
        )
    return server_prefix


def check_number(number: int, least: int = 1, name: str = "The number") -> int:
    """Return a number from ``least`` to 2^63-1, else raise `InvalidDocumentId`."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidDocumentId(f"{name} {shown(number)} must be an int.")
    if not least <= number <= MAX_NUMBER:
        raise InvalidDocumentId(
            f"{name} {shown(number)} must be from {least} to {MAX_NUMBER} (2^63-1)."
        )
    return number


def check_digits(number: int, width: int = 0) -> str:
    """Return a checked number's digits, with zeros before them up to ``width``."""
    digits = str(check_number(number))
    if width and not len(digits) < width <= MAX_WIDTH:
        raise InvalidDocumentId(
            f"The width {width!r} must be 0, or larger than the {len(digits)} digits "
            f"of {number} and at most {MAX_WIDTH}."
        )
    return digits.zfill(width)


def check_node_tag(node_tag: str) -> str:
    """Return "" or 1 to 4 upper-case letters, else raise `InvalidDocumentId`."""
    if node_tag and not _NODE_TAG.fullmatch(node_tag):
        raise InvalidDocumentId(
            f"The node tag {shown(node_tag)} must be 1 to 4 upper-case letters A-Z."
        )
    return node_tag


def check_anchor(anchor: str) -> str:
    """Return an anchor that is a text of at least 1 character, else raise."""
    if not isinstance(anchor, str) or not anchor or "\x00" in anchor:
        raise InvalidDocumentId(
            f"The anchor {shown(anchor)} must be a string of at least one character, "
            f"without NUL."
        )
    return anchor
