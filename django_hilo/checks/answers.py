"""Let a check survive what its database cannot answer, and say so."""

from collections.abc import Callable, Iterable

from django.core.checks import CheckMessage, Info
from django.db import Error, connections

from django_hilo._database.dialects import ErrorKind, classify
from django_hilo._operations.highest_numbers import sparing
from django_hilo.exceptions import HiLoError


def answers(
    ask: Callable[[], Iterable[CheckMessage]], alias: str, what: str
) -> list[CheckMessage]:
    """Return the messages of a question, or one that ``what`` could not be inspected.

    Tables before their migration are not worth one, and `check_sources` reports what
    is wrong with a source.
    """
    try:
        with sparing(alias):
            return list(ask())
    # Django's introspection raises KeyError for a table outside of the search path.
    except (Error, HiLoError, LookupError, ValueError) as problem:
        kind = classify(problem, connections[alias])
        if kind is ErrorKind.NO_TABLE or isinstance(problem, HiLoError):
            return []
        text = f"{what} on {alias!r} could not be inspected: {problem!r}"
        hint = "Run the check after migrate, with enough privileges."
        return [Info(text, hint=hint, id="django_hilo.I030")]
