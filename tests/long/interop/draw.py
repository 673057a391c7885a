"""RavenDB's Python client as a program; it speaks as draw.mjs does."""

import json
import sys
from typing import Any
from urllib.parse import quote

from ravendb import DocumentStore
from ravendb.documents.operations.identities import (
    GetIdentitiesOperation,
    NextIdentityForOperation,
    SeedIdentityForOperation,
)

store: DocumentStore


class Order:
    def __init__(self) -> None:
        self.Id = None


class Product(Order):
    pass


def open_store(url: str, database: str, user: str = "") -> None:
    global store
    if user:
        name, _, password = user.partition(":")
        url = url.replace("//", f"//{quote(name, '')}:{quote(password, '')}@", 1)
    store = DocumentStore(url, database)
    store.conventions.disable_topology_cache = True  # it would be in the home folder
    store.initialize()


def close_store() -> None:
    store.close()


def draw(count: int) -> list[str]:
    generator = store.hilo_id_generator
    return [generator.generate_document_id(None, Order()) for _ in range(count)]


def ways() -> dict[str, str | None]:
    stored = Order()
    with store.open_session() as session:
        session.store(stored)
    generator = store.hilo_id_generator
    return {
        "stored": stored.Id,
        "same": generator.generate_document_id(None, Order()),
        "document": generator.generate_document_id("shop", Product()),
    }


def next_identity(name: str) -> int:
    return store.maintenance.send(NextIdentityForOperation(name))


def seed(name: str, value: int, force: bool) -> int:
    return store.maintenance.send(SeedIdentityForOperation(name, value, force))


def identities() -> dict[str, int]:
    return store.maintenance.send(GetIdentitiesOperation())


TASKS = {
    "open": open_store,
    "close": close_store,
    "draw": draw,
    "ways": ways,
    "next": next_identity,
    "seed": seed,
    "identities": identities,
}

for line in sys.stdin:
    task: dict[str, Any] = json.loads(line)
    try:
        answer: object = TASKS[task.pop("task")](**task)
    except Exception as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
