"""The settings: ``settings.HILO``, loaded at the first read and when it is overridden.

A change of the dict in place is not seen, as with Django REST framework's settings.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

DEFAULT_NODE_TAG = "A"


class Defaults:
    """The keys of ``settings.HILO``, with their defaults."""

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


if TYPE_CHECKING:
    _Keys = Defaults
else:
    _Keys = object


class Settings(_Keys):
    """The settings of the project, an attribute for each key."""

    def __getattr__(self, name: str) -> Any:
        # Called until they are loaded: not at import, since settings.py may import us.
        if name not in KEYS:
            raise AttributeError(name)
        hilo = getattr(django_settings, "HILO", None)
        given = hilo if isinstance(hilo, Mapping) else {}
        loaded = {key: given.get(key, getattr(Defaults, key)) for key in KEYS}
        vars(self).update(loaded)
        return loaded[name]

    def forget(self, setting: str = "HILO", **kwargs: object) -> None:
        """Load the settings anew at the next read (setting_changed)."""
        if setting == "HILO":
            vars(self).clear()

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


KEYS = frozenset(Defaults.__annotations__)

settings = Settings()
setting_changed.connect(settings.forget, dispatch_uid="django_hilo.settings")
