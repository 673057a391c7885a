"""The settings, read from ``settings.HILO`` at each use."""

import re
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured

DEFAULT_NODE_TAG = "A"


def given() -> dict[str, Any]:
    """Return ``settings.HILO``, or an empty dict."""
    return getattr(django_settings, "HILO", None) or {}


class Settings:
    """The keys of ``settings.HILO``, with their defaults, read live at each use."""

    # The end of ids, and part of the counter's key; a text, or {alias: text}.
    NODE_TAG: str | dict[str, str] = DEFAULT_NODE_TAG
    # Whether ids show the node tag.
    SHOW_NODE_TAG: bool = True
    # The character between collection and number.
    SEPARATOR: str = "/"
    # Minimum range size.
    CAPACITY: int = 32
    # Maximum range size, unless a caller requests more.
    MAX_CAPACITY: int = 1_048_576
    # Home database, an alias; None: the database that the row is saved to.
    DATABASE: str | None = None
    # Seconds that a reservation waits for the lock of the counter's row.
    LOCK_TIMEOUT: float = 5.0
    # Seconds in which a reservation is retried after deadlocks and lost connections.
    RETRY_FOR: float = 15.0
    # Share of a range that is used when the next one is fetched in the background, over
    # 0 and under 1, such as 0.5; None: the next one is fetched when none is left.
    PREFETCH_AT: float | None = None
    # Level for the commit of a reservation on PostgreSQL, such as "remote_apply"; None:
    # the server's.
    SYNCHRONOUS_COMMIT: str | None = None
    # Maximum distance of the number of an explicit id above Max.
    MAX_FLOOR_JUMP: int = 1_000_000_000
    # Maximum number of ids, or range size, for one REST request.
    MAX_NUMBERS_PER_REQUEST: int = 10_000
    # Counters that other systems own, by collection; see django_hilo.sources.
    SOURCES: dict[str, Any] = {}
    # Names that RavenDB's clients may ask for, and the aliases they stand for.
    RAVENDB_DATABASES: dict[str, str] = {}
    # SHA-256 digests (64 hexadecimal digits) of tokens that may stand in the URL path.
    RAVENDB_TOKENS: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.isupper():
            # Not given(): every call counts here.
            hilo = getattr(django_settings, "HILO", None)
            if hilo and name in hilo:
                return hilo[name]
        return super().__getattribute__(name)

    def node_tag(self, alias: str) -> str:
        """Return the node tag of a database alias, by default "A".

        Raises ImproperlyConfigured for what is none, since the workers of a server run
        no system checks.
        """
        tag: Any = self.NODE_TAG
        if isinstance(tag, dict):
            tag = tag.get(alias, DEFAULT_NODE_TAG)
        if isinstance(tag, str) and re.fullmatch("[A-Z]{1,4}", tag):
            return tag
        raise ImproperlyConfigured(
            f"HILO['NODE_TAG'] is {self.NODE_TAG!r}. It must be 1 to 4 upper-case "
            f"letters, or a dict of them by database alias."
        )


KEYS = frozenset(Settings.__annotations__)

settings = Settings()
