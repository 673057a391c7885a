from __future__ import annotations

from typing import Any

from django.conf import settings as django_settings

DEFAULT_NODE_TAG = "A"


def given() -> dict[str, Any]:
    """Return what the project gives, ``settings.HILO``."""
    return getattr(django_settings, "HILO", None) or {}


class Settings:
    """The keys of ``settings.HILO``, with their defaults, read live at each use."""

    # Names the counter's row and ends the ids; a text, or {alias: text}.
    NODE_TAG: str | dict[str, str] = DEFAULT_NODE_TAG
    # Whether ids show the node tag.
    SHOW_NODE_TAG: bool = True
    # Stands between collection and number.
    SEPARATOR: str = "/"
    # Least numbers in a range.
    CAPACITY: int = 32
    # Most numbers in a range that nobody asked to be longer.
    MAX_CAPACITY: int = 1_048_576
    # Home database, an alias; None: the database that the row is saved to.
    DATABASE: str | None = None
    # Seconds that a reservation waits for the lock of the counter's row.
    LOCK_TIMEOUT: float = 5.0
    # Seconds that a reservation is tried again after deadlocks and lost connections.
    RETRY_FOR: float = 15.0
    # Share of a range that is used when the next one is fetched in the background, over
    # 0 and under 1, such as 0.5; None: the next one is fetched when none is left.
    PREFETCH_AT: float | None = None
    # Level for the commit of a reservation on PostgreSQL, such as "remote_apply"; None:
    # the server's.
    SYNCHRONOUS_COMMIT: str | None = None
    # How far over Max the number of an explicit id may be.
    MAX_FLOOR_JUMP: int = 1_000_000_000
    # Most ids, or numbers in a range, that one REST request may take.
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
        """Return the node tag of a database alias; "A" where none is given for it."""
        tag = self.NODE_TAG
        if isinstance(tag, dict):
            return tag.get(alias, DEFAULT_NODE_TAG)
        return tag


KEYS = frozenset(Settings.__annotations__)

settings = Settings()
