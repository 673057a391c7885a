"""Return what memories hold to their counters.

`process_hooks` does it when a process ends, through `generator.return_ranges`.
"""

import logging
from collections.abc import Iterable

from django.db import Error

from django_hilo._allocation.memory import Memory
from django_hilo._database.identity import in_schema, is_still_there
from django_hilo._database.own_connection import close_unused
from django_hilo.exceptions import HiLoError

logger = logging.getLogger("django_hilo")


def give_back(memories: Iterable[Memory]) -> int:
    """Return the unused end of each newest range; return how many there were.

    Those that cannot be returned are logged and become gaps.
    """
    returned, failed = 0, set()
    for held in memories:
        cached, source = held.give_up_newest(), held.source
        database, alias = held.database, held.database.alias
        is_away = alias in failed or not is_still_there(database)
        if cached is None or source is None or is_away:
            continue
        try:
            with in_schema(alias, database.schema):
                if source.give_back(alias, cached.reservation, cached.next - 1):
                    held.returned(cached)
                    returned += 1
        except (Error, HiLoError) as error:
            failed.add(alias)
            logger.warning("Unused numbers on %r become a gap: %s", alias, error)
    close_unused()
    return returned
