from __future__ import annotations

from django_hilo.sources.base import Fault
from django_hilo.sources.rules import Rule


def near_limit(name: str, stored: int, limit: int, rule: Rule) -> Fault | None:
    """Return a fault where nine tenths of the numbers, or of the ids, are used.

    ``limit`` is the highest number that the place of ``stored`` takes.
    """
    if _is_near(stored, limit):
        return Fault(
            f"{name} is {stored}; its type ends at {limit}.",
            "Widen it to bigint, and the partner's type with it, before it is used up.",
            is_certain=stored + rule.increment > limit,
        )
    highest = rule.highest(stored)
    if _is_near(highest, rule.max_number):
        return Fault(
            f"{name} has given ids up to {highest}; max_number is {rule.max_number}.",
            "Widen the partner's type and the columns of its ids, then raise "
            "max_number.",
            is_certain=highest >= rule.max_number,
        )
    return None


def _is_near(number: int, limit: int) -> bool:
    return number > limit // 10 * 9
