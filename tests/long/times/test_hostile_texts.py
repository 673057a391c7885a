"""Texts that are made to be slow cost no more time than their length."""

import re
import time

import pytest

from django_hilo.converters import HiLoConverter
from django_hilo.identifiers import ID_PATTERN, check_server_prefix, parse

# A server refuses an address of 8 kB or sends it on; this is eight times as long, and
# what costs the square of it costs minutes.
LONG = 64_000
SECONDS = 5.0

ROUTES = {
    "one": "^orders/{0}/$",
    "suffix": r"^orders/{0}\.(?P<format>[a-z0-9]+)/?$",
    "two": "^orders/{0}/lines/{0}/$",
    "side by side": "^{0}/{0}/{0}$",
}
STARTS = ["orders/", "orders/orders/1", "orders/orders/1/lines/", "orders/1$"]
UNITS = [
    *("a", "1", "0", "/", "$", "-", "A", "-A", "a/", "1/", "x1/", "1-A/", "$a", "$1"),
    *("a1/lines/a/", "b:1/lines/b:1", "a1/lines/b/", "a/1", "a/1$", "$a/1", "$a/1/"),
    *("$a:1", "$a:1-A", "1a", "/lines/", "orders/1/lines/", "orders/1$orders/1/"),
]
ENDS = ["", "/", "!", "\0", "/x y/"]


def seconds_of(action, *arguments):
    """How long this process computes; others may have the machine meanwhile."""
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start


class TestTime:
    @pytest.mark.parametrize("route", ROUTES)
    def test_of_an_address_that_is_made_to_be_slow(self, route):
        regex = re.compile(ROUTES[route].format(ID_PATTERN))
        for start in STARTS:
            for unit in UNITS:
                for end in ENDS:
                    text = start + unit * (LONG // len(unit)) + end
                    assert seconds_of(regex.match, text) < SECONDS, (start, unit, end)

    @pytest.mark.parametrize("start", ["orders/", "orders/1$", "", "o", "orders/1-"])
    @pytest.mark.parametrize("unit", [*UNITS, "1x", "x1", "\u202e", "😀", " "])
    def test_of_reading_an_id(self, start, unit):
        text = start + unit * (LONG // len(unit))
        for action in (_parsed, HiLoConverter().to_python, check_server_prefix):
            assert seconds_of(_refused, action, text) < SECONDS, action


def _parsed(text: str) -> str:
    assert str(parse(text)) == text
    return text


def _refused(action, text):
    try:
        action(text)
    except ValueError as error:
        assert len(str(error)) < 500
