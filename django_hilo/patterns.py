"""Where an id in a URL ends, as regular expressions; what it is inside, parsing tells.

Each part has bounds. Without them a route with several ids would try each end of one
with each end of the next, for as long as a hostile URL likes.
"""

from __future__ import annotations

SIGN = r"[^\s$|/\x00-\x1f\x7f]"
NUMBER = r"0{0,18}[1-9][0-9]{0,18}"
TAG = r"-[A-Z]{1,4}"
# A collection and a separator.
START = r"[A-Za-z][A-Za-z0-9_-]{0,99}[!-#%-,./:-@\[-^`{}~]"
# Parts of server prefixes, none of which is a number: the id would end there.
PARTS = rf"(?:(?!{NUMBER}/|{NUMBER}{TAG}/){SIGN}{{0,31}}/){{0,8}}"
# Where ids end in a tag, a number without one is a part if one with a tag comes next.
TAGGED_PARTS = (
    rf"(?:(?!{NUMBER}/(?!{NUMBER}{TAG}(?![^$/]))|{NUMBER}{TAG}/)"
    rf"{SIGN}{{0,31}}/){{0,8}}"
)


def pattern_of(start: str, parts: str, anchored_parts: str) -> str:
    """Return the pattern of one id, which has no groups.

    What reads routes is simple: parentheses count in character classes too, and a group
    may hold one other group only (django.contrib.admindocs, and so OpenAPI's paths).
    """
    return (
        rf"{start}{parts}(?:{SIGN}{{0,31}}[^\s$|/0-9\x00-\x1f\x7f])?{NUMBER}"
        rf"(?:{TAG})?"
        # Told apart by the next slash: what can be read in two ways takes for ever.
        rf"(?:\$(?=[^$/]*/){START}{anchored_parts}{SIGN}{{0,50}}[0-9]-?[A-Z]{{0,4}}"
        r"|\$[^$/\x00]*){0,8}"
    )


# One id of any collection. It ends where the id does: orders/33-A in
# orders/33-A/lines. It leaves out server prefixes with a part that looks like a number
# (4/, 33-A/), as what follows would be the name of an action, anchors with a slash that
# do not end in a number, and more than 8 slashes in a prefix or 8 "$" in an id.
ID_PATTERN = pattern_of(START, PARTS, PARTS)
