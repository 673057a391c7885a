"""What is compared in memory, as one would write it."""

from __future__ import annotations

from typing import NamedTuple

BULK = 100_000


class Statement(NamedTuple):
    """Code that is repeated, after code that is not."""

    code: str
    setup: str = ""
    # Made by each repetition.
    ids: int = 1


OURS = """
from benchmarks.shop.models import AutoOrder, Order
from django_hilo.generator import anext_id, iter_ids, next_id, next_ids, next_number
"""

# A loop takes longer to start than to await an id, so many are awaited in turn.
AWAITED = 1_000
IN_A_LOOP = f"""{OURS}
from asyncio import new_event_loop

async def take():
    for _ in range({AWAITED}):
        await anext_id(Order)

loop = new_event_loop()
"""
SETTING = "settings.CAPACITY"

# A process that has been busy has long ranges.
WARM = Statement("next(ids)", OURS + "ids = iter_ids(Order)")
WARM_IDS = 300_000

STATEMENTS = {
    "next(iter_ids(Order))": Statement("next(ids)", OURS + "ids = iter_ids(Order)"),
    "next_id(Order)": Statement("next_id(Order)", OURS),
    "next_number(Order)": Statement("next_number(Order)", OURS),
    "await anext_id(Order)": Statement(
        "loop.run_until_complete(take())", IN_A_LOOP, AWAITED
    ),
    "Order.objects.next_id()": Statement("Order.objects.next_id()", OURS),
    "next_ids(Order, 100_000)": Statement("next_ids(Order, 100_000)", OURS, BULK),
    "str(uuid.uuid4())": Statement("str(uuid4())", "from uuid import uuid4"),
    "uuid.uuid4()": Statement("uuid4()", "from uuid import uuid4"),
    "str(uuid_utils.uuid4())": Statement(
        "str(uuid4())", "from uuid_utils import uuid4"
    ),
    "str(uuid_utils.uuid7())": Statement(
        "str(uuid7())", "from uuid_utils import uuid7"
    ),
    "uuid_utils.compat.uuid7()": Statement(
        "uuid7()", "from uuid_utils.compat import uuid7"
    ),
    "str(ulid.ULID())": Statement("str(ULID())", "from ulid import ULID"),
    # None: it has given the 4,096 ids of this millisecond.
    "snowflake-id": Statement(
        "while (id := next(ids)) is None: pass\nstr(id)",
        "from snowflake import SnowflakeGenerator\nids = SnowflakeGenerator(1)",
    ),
    "Order()": Statement("Order()", OURS),
    "AutoOrder()": Statement("AutoOrder()", OURS),
    SETTING: Statement(SETTING, "from django_hilo.conf import settings"),
}
NO_IDS = {"Order()", "AutoOrder()", SETTING}
IDS = [name for name in STATEMENTS if name not in NO_IDS]
