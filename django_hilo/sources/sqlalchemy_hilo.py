"""The package sqlalchemy-hilo, whose counters cannot be shared."""

from typing import Any, NoReturn

from django_hilo.exceptions import UnsafeSource


class HiLo:
    """HiLoGenerator and RowPerTableHiLoGenerator: always `UnsafeSource`."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsafeSource(
            "sqlalchemy-hilo reads its row without a lock and writes it without a "
            "comparison: 940 of 2,400 ids were given twice when measured. Stop its "
            "processes permanently, and take over its counter: Max is (next_hi + 1) * "
            "10000."
        )
