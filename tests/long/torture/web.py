"""What programs do that draw over REST and over RavenDB's protocol."""

import http.client
import json
from base64 import b64encode
from typing import Any

from tests.long.torture.counters import ORDERS
from tests.long.torture.errors import OF_THE_WEB, Busy
from tests.long.torture.loans import must_be_refused, settle
from tests.long.torture.notes import note, spans_of
from tests.long.torture.settings import FOLDER, PASSWORD, TOKEN, USER
from tests.support.patience import PATIENCE

_BASIC = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_HEADERS = {"Authorization": f"Basic {_BASIC}", "Content-Type": "application/json"}
_CREATED, _OK, _CONFLICT, _NO_CONTENT = 201, 200, 409, 204


def rest_ids(count: int) -> None:
    """Take ids."""
    answer = _rest("POST", "collections/orders/next-id/", {"count": count}, _CREATED)
    numbers = answer["numbers"]
    assert answer["ids"] == [f"orders/{number}-A" for number in numbers]
    assert len(numbers) == count, f"{len(numbers)} ids, not {count}"
    note("got", ORDERS, *spans_of(numbers))


def rest_range(size: int, used: int, then: str) -> None:
    """Take a range, and return it in one way or another."""
    lent = _rest("POST", "collections/orders/ranges/", {"size": size}, _CREATED)
    low, high, ticket = lent["low"], lent["high"], lent["ticket"]
    last = low - 1 + used
    if used:
        note("got", ORDERS, f"{low}-{last}")
    if then == "late":
        rest_range(1, 1, "keep")
        must_be_refused(_return, high, last, ticket)
    else:
        settle(_return, then, low, high, last, ticket)


def rest_gapless() -> None:
    """Take a gapless number."""
    note("counting", "plain-letters")
    answer = _rest("POST", "gapless/plain-letters/next/", {}, _CREATED)
    note("counted", "plain-letters", answer["number"])


def rest_raise(by: int) -> None:
    """Raise Max."""
    path = f"documents/{ORDERS}/"
    # Until somebody has drawn from it, there is no counter.
    row = _rest("GET", path, None, _OK, 404)
    if "max" in row:
        _rest("PATCH", path, {"max": row["max"] + by}, _OK, _CONFLICT)


def raven_range(size: int, used: int, then: str) -> None:
    """Take a range as RavenDB's clients do, who use at least one number."""
    path = "databases/shop/hilo"
    lent = _raven("GET", f"{path}/next?tag=orders&lastBatchSize={size}", _CREATED)
    low, high = lent["Low"], lent["High"]
    last = min(low + used, high)
    note("got", ORDERS, f"{low}-{last}")
    returning = f"{path}/return?tag=orders&end={high}&last="
    if then in ("proper", "replayed"):
        for _ in range(1 if then == "proper" else 3):
            _raven("PUT", f"{returning}{last}", _NO_CONTENT)
    elif then == "below":
        # 204 in any case: the numbers must not come again.
        for wrong in low - 1, 0, -5:
            _raven("PUT", f"{returning}{wrong}", _NO_CONTENT)


def _return(high: int, last: int, ticket: str) -> bool:
    sent = {"high": high, "last": last, "ticket": ticket}
    answer = _rest("POST", "collections/orders/ranges/return/", sent, _OK, 400, 409)
    return bool(answer.get("returned"))


def _rest(method: str, path: str, sent: Any, *expected: int) -> dict[str, Any]:
    body = None if sent is None else json.dumps(sent)
    return _ask(method, f"/hilo/{path}", body, _HEADERS, expected)


def _raven(method: str, path: str, *expected: int) -> dict[str, Any]:
    return _ask(method, f"/raven/{TOKEN}/{path}", None, {}, expected)


def _ask(
    method: str,
    path: str,
    body: str | None,
    headers: dict[str, str],
    expected: tuple[int, ...],
) -> dict[str, Any]:
    port = int((FOLDER / "port").read_text())
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request(method, path, body, headers)
        response = client.getresponse()
        text = response.read().decode()
    except OF_THE_WEB as error:
        raise Busy(f"{type(error).__name__}: {error}") from error
    finally:
        client.close()
    if response.status == 503:
        raise Busy(f"{path.split('?', maxsplit=1)[0]}: 503")
    assert response.status in expected, f"{method} {path}: {response.status} {text}"
    return json.loads(text) if text else {}
