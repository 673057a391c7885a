import sys

from tests.long.hosting.conftest import need
from tests.support.commands import output_of

GREENLETS = """
from gevent import monkey
monkey.patch_all()

import gevent
from itertools import count
from django_hilo.counters import HiLoKeyGenerator

blocks = count(1)

def next_block():
    gevent.sleep(0.01)  # the other greenlets run meanwhile
    return next(blocks)

keys = HiLoKeyGenerator(next_block, 2)
greenlets = [gevent.spawn(keys.generate_key) for _ in range(6)]
gevent.joinall(greenlets, raise_error=True)
print(sorted(each.value for each in greenlets))
"""


def test_a_greenlet_waits_for_another_that_has_the_lock():
    """To Python's own lock all are one thread, which would be refused (nested)."""
    need("gevent")
    assert output_of(sys.executable, "-c", GREENLETS) == "[2, 3, 4, 5, 6, 7]"
