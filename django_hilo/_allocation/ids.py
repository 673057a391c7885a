"""The ids of numbers that a target's counter gave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django_hilo._allocation import formats
from django_hilo._allocation.allocate import cut_in_memory
from django_hilo._allocation.block import Block
from django_hilo._allocation.cache import Share
from django_hilo._allocation.formats import Numbers, Style, TextStyle
from django_hilo._allocation.target import Target
from django_hilo.conf import settings
from django_hilo.identifiers import check_separator


def style_of(target: Target) -> Style:
    """Return how ids of a target look, by the settings as they are now."""
    if target.is_integer:
        return Numbers()
    separator = check_separator(settings.SEPARATOR)
    return TextStyle(target.collection, separator, settings.SHOW_NODE_TAG, target.width)


def ids_of(target: Target, shares: Iterable[Share]) -> list[Any]:
    """Return the ids of numbers that were drawn."""
    style = style_of(target)
    found: list[Any] = []
    for share in shares:
        found += formats.ids(style.of(share.reservation), share.low, share.high)
    return found


def next_in_memory(target: Target) -> tuple[Any, Block] | None:
    """Return the next id, and the block with those after it, if memory has one."""
    key, style = target.key, style_of(target)
    block = cut_in_memory(target, key, style, None)
    while block is not None:
        try:
            return next(block.ids), block
        except StopIteration:
            block = cut_in_memory(target, key, style, block)
    return None
