"""Explicit ids, which callers chose themselves: they raise the counter.

Each is a text that messages show, with the number in it.
"""

from collections.abc import Iterator
from typing import Any

from django_hilo._allocation import explicit_ids
from django_hilo._allocation.known_targets import known_target
from django_hilo._allocation.target import Target
from django_hilo.fields._notes import Instances, ReadsNotes


class ReadsExplicitIds(ReadsNotes):
    """The part of a field that keeps its counter over explicit ids.

    Fields with gapless ids have methods of their own.
    """

    # Of each kind of fields.
    number_in: Any

    def check_explicit(self, instances: Instances, using: str) -> dict[str, int]:
        """Return the explicit ids; raise `HiLoError` if a number is absurdly high."""
        found = self.explicit_ids(instances, using)
        if found:
            self.check_jump(found, using)
        return found

    def note_explicit(self, value: Any) -> None:
        """Note an explicit id, before its row is inserted."""

    def explicit_values(
        self, instances: Instances, using: str
    ) -> Iterator[tuple[Any, str | None]]:
        """Yield each id not assigned for rows on ``using``, and the alias it was for.

        An id that was taken back is not explicit: its number comes again.
        """
        for each in instances:
            alias = self.assigned_for(each)
            value = None if alias == using else self.value_of(each)
            if value not in (None, "") and not self.was_taken_back(each):
                if each._state.adding:
                    self.note_explicit(value)
                yield value, alias

    def target(self, using: str) -> Target:
        """Return the counter of rows on ``using``."""
        field: Any = self
        return known_target(field, using).target

    def explicit_ids(self, instances: Instances, using: str) -> dict[str, int]:
        """Return the explicit ids that the field's own counter could give."""
        found: dict[str, int] = {}
        target: Target | None = None
        for value, alias in self.explicit_values(instances, using):
            target = target or self.target(using)
            # Not explicit if it was assigned for another alias with the same counter.
            if alias is None or self.target(alias).key != target.key:
                number = self.number_in(value, target, using)
                if number is not None:
                    found[str(value)] = number
        return found

    def check_jump(self, ids: dict[str, int], using: str) -> None:
        """Raise `HiLoError` if one of the numbers is absurdly high."""
        highest = max(ids, key=lambda id: ids[id])
        explicit_ids.check_jump(self.target(using), ids[highest], highest)

    def avoid(self, ids: dict[str, int], using: str) -> None:
        """Give none of the numbers to the objects that are saved beside them."""
        explicit_ids.reserve_explicit(self.target(using), list(ids.values()))

    def raise_over(self, ids: dict[str, int], using: str) -> None:
        """Raise the counter to the numbers of rows that were inserted."""
        explicit_ids.record_explicit(self.target(using), list(ids.values()), using)
