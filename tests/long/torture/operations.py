"""What a user does to ids and rows, one operation a method."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from typing import Any

from django.db import IntegrityError, connection, connections, models, transaction
from django.db.models.signals import pre_save
from django.dispatch import receiver

from django_hilo.exceptions import HiLoError, ReservationTimeout
from django_hilo.generator import (
    iter_ids,
    next_id,
    next_ids,
    next_number,
    next_numbers,
    return_ranges,
)
from django_hilo.models import HiLoDocument
from tests.apps.numbers.models import Item
from tests.apps.records.models import (
    Letter,
    Order,
    OrderLine,
    Person,
    Plain,
    Restaurant,
)
from tests.apps.series.models import Receipt
from tests.long.torture import lost
from tests.long.torture.blocks import alone, guarded
from tests.long.torture.counters import ORDERS, PLAIN, counter_of, items, number_of
from tests.long.torture.errors import Doomed
from tests.long.torture.notes import note, spans_of

# The places of receipts, each with a series.
SERIES = ("oslo", "bergen", "oslo-2")
# The email that a person has before the run begins.
TAKEN = "taken"


class Operations:
    """One thread's hand in the counters."""

    def __init__(self, seat: int, thread: int) -> None:
        self._start = f"{seat}.{thread}"
        self._names = 0

    # Ids alone

    def next_id(self, count: int) -> None:
        for number in range(count):
            give([next_id(Order) if number % 2 else next_id("orders")])

    def next_ids(self, count: int) -> None:
        give(next_ids(Order, count))

    def manager_next_ids(self, count: int) -> None:
        give(Order.objects.next_ids(count))

    def iter_ids(self, count: int) -> None:
        for id in islice(iter_ids("records.Order"), count):
            give([id])

    def next_numbers(self, count: int) -> None:
        note("given", items(), *spans_of(next_numbers(Item, count)))

    def assign_ids(self, count: int, saves: bool) -> None:
        orders = [Order(name=name) for name in self._made(Order, count)]
        Order.objects.assign_ids(orders)
        if not saves:
            give([order.pk for order in orders])
            if connection.in_atomic_block:
                for order in orders:
                    order.noted = order.pk
                lost.hold(*orders)
            return
        with self._rows():
            for order in orders:
                order.save()
            bear(*orders)

    # Rows

    def create(self) -> None:
        with self._rows():
            bear(Order.objects.create(name=self._made(Order, 1)[0]))

    def save(self) -> None:
        order = Order(name=self._made(Order, 1)[0])
        with self._rows():
            order.save()
            bear(order)

    def bulk_create(self, count: int) -> None:
        orders = [Order(name=name) for name in self._made(Order, count)]
        with self._rows():
            Order.objects.bulk_create(orders)
            bear(*orders)

    def get_or_create(self) -> None:
        with self._rows():
            order, created = Order.objects.get_or_create(name=self._made(Order, 1)[0])
            assert created, f"{order.pk} has the name {order.name}"
            bear(order)

    def create_integer(self) -> None:
        with self._rows():
            bear(Item.objects.create(name=self._made(Item, 1)[0]))

    def bulk_create_integer(self, count: int) -> None:
        items = [Item(name=name) for name in self._made(Item, count)]
        with self._rows():
            Item.objects.bulk_create(items)
            bear(*items)

    def create_plain(self) -> None:
        self._insert_plain([Plain(name=self._made(Plain, 1)[0])])

    def bulk_create_plain(self, count: int) -> None:
        self._insert_plain([Plain(name=name) for name in self._made(Plain, count)])

    def explicit(self, jump: int) -> None:
        number = next_number(Plain)
        note("given", PLAIN, f"{number}-{number}")
        note("choosing", number + jump)
        row = Plain(id=f"plain-things/{number + jump}-A", name=self._made(Plain, 1)[0])
        self._insert_plain([row], chosen=True)

    def _insert_plain(self, rows: list[Plain], *, chosen: bool = False) -> None:
        """Insert rows; a number that somebody chose may be in the way."""
        with self._refusable(rows, is_own=not chosen) as collided:
            if len(rows) == 1:
                rows[0].save(force_insert=True)
            else:
                Plain.objects.bulk_create(rows)
            if chosen:
                note("chosen", rows[0].pk, rows[0].name)
            else:
                bear(*rows)
        if collided:
            self._note_collided(rows, chosen=chosen)

    def _note_collided(self, rows: list[Plain], *, chosen: bool = False) -> None:
        ids = [row.pk or row.tried for row in rows]
        note("collided", "chosen" if chosen else "own", *ids)
        if len(rows) == 1 and not chosen:
            lost.add(*rows)

    @contextmanager
    def _refusable(
        self, rows: list[Any], *, is_own: bool = True
    ) -> Iterator[list[str]]:
        """Insert rows; what is given gets the error of a table that refuses them."""
        inside, refused = connection.in_atomic_block, list[str]()
        try:
            with guarded() if inside else alone():
                try:
                    yield refused
                except BaseException:
                    if is_own and (inside or is_refusal()):
                        note_ids(*rows)
                    raise
        except IntegrityError as error:
            if connection.needs_rollback:
                raise Doomed(str(error)) from error
            refused.append(str(error))

    def create_child(self) -> None:
        with self._rows():
            name = self._made(Restaurant, 1)[0]
            bear(Restaurant.objects.create(name=name, stars=1))

    def create_line(self) -> None:
        """Create an order with a line, which are lost and saved again together."""
        [name] = self._new_names(1)
        order = Order(name=name)
        line = OrderLine(order=order)
        note("making", "OrderLine", name, name)
        with self._rows():
            order.save()
            line.save()
            _note_row("born", order)
            bear(line)

    def refused(self, count: int) -> None:
        """Save people of whom one has the email of somebody else."""
        people = [Person(email=name) for name in self._new_names(count)]
        name, people[-1].email = people[-1].email, TAKEN
        with self._refusable(people) as refused:
            if count == 1:
                people[0].save()
            else:
                Person.objects.bulk_create(people)
        assert refused, f"The email {TAKEN!r} is there twice."
        people[-1].email = name
        lost.add(*people)

    def save_again(self, model: str, count: int, way: str) -> None:
        """Save objects whose rows were rolled back or refused before."""
        # Number by number: those that somebody chose may be in the way.
        rows = lost.take(model, 1 if model == "Plain" else count)
        if not rows:
            return
        orders = [row.order for row in rows] if model == "OrderLine" else []
        note("making", model, *map(name_of, [*orders, *rows]))
        if model == "Plain":
            with self._refusable(rows) as collided:
                rows[0].save()
                self._bear_again(*rows)
            if collided:
                self._note_collided(rows)
            return
        with self._rows():
            lost.hold(*rows)
            try:
                left = set(map(id, self._save_all(orders, way)))
                # Of an order that is not saved, another process may have the id.
                rows = [
                    row for row in rows if id(getattr(row, "order", row)) not in left
                ]
                self._save_all(rows, way)
            except BaseException:
                if connection.in_atomic_block:
                    for group in (orders, rows):
                        note_ids(*group)
                raise

    def _save_all(self, rows: list[Any], way: str) -> list[Any]:
        """Save objects again; return those that may have a number of others."""
        if not rows:
            return []
        objects, left = type(rows[0]).objects, []
        in_bulk = "bulk_create" in way and not isinstance(rows[0], Restaurant)
        for group in [rows] if in_bulk else [[row] for row in rows]:
            try:
                if "assign_ids" in way:
                    objects.assign_ids(group)
                objects.bulk_create(group) if in_bulk else group[0].save()
            except HiLoError as error:
                if "another process may have the id now" not in str(error):
                    raise
                left += group
                note("left", type(group[0]).__name__, len(group))
            else:
                self._bear_again(*group)
        return left

    def _bear_again(self, *rows: Any) -> None:
        for row in rows:
            former = getattr(row, "noted", None)
            word = "kept" if row.pk == former else "reborn" if former else "born"
            _note_row(word, row)
            if not name_of(row).startswith(f"{self._start}."):
                note("did", "rows saved again by another thread")

    def gapless(self) -> None:
        with self._rows():
            bear(Letter.objects.create(name=self._made(Letter, 1)[0]))
            # Always after that counter: no two transactions wait for each other.
            names = zip(SERIES, self._made(Receipt, len(SERIES)), strict=True)
            receipts = [Receipt(place=place, name=name) for place, name in names]
            Receipt.objects.bulk_create(receipts)
            bear(*receipts)

    # The memory, the connections

    def return_ranges(self) -> None:
        return_ranges()

    def close(self) -> None:
        connections.close_all()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def locked_by_itself(self) -> None:
        """Ask for a range while the own transaction holds the counter's row."""
        if connection.vendor == "sqlite":
            return  # the range is taken in the same transaction
        with transaction.atomic():
            rows = HiLoDocument.objects.select_for_update()
            if not rows.filter(pk=ORDERS).exists():
                return
            try:
                # More than any range holds.
                ids = next_ids(Order, 40_000)
            except ReservationTimeout:
                return
            give(ids)

    def _made(self, model: type[models.Model], count: int) -> list[str]:
        """Return names of rows that are to be made."""
        names = self._new_names(count)
        note("making", model.__name__, *names)
        return names

    def _new_names(self, count: int) -> list[str]:
        first = self._names
        self._names += count
        return [f"{self._start}.{first + place}" for place in range(count)]

    def _rows(self) -> AbstractContextManager[None]:
        return nullcontext() if connection.in_atomic_block else alone()


def give(ids: Iterable[str]) -> None:
    """Note ids of orders that the process may use now."""
    note("given", ORDERS, *spans_of(order_number(id) for id in ids))


def order_number(id: str) -> int:
    """Return the number of an order's id, which must have its exact shape."""
    number = int(id.removeprefix("orders/").removesuffix("-A"))
    assert id == f"orders/{number}-A", f"{id} is no id of an order."
    return number


def bear(*rows: Any) -> None:
    """Note rows that were inserted, to be saved again if they are rolled back."""
    for row in rows:
        _note_row("born", row)
    lost.hold(*(row for row in rows if not isinstance(row, Letter | Plain | Receipt)))


def _note_row(word: str, row: Any) -> None:
    note(word, type(row).__name__, row.pk, name_of(row))
    row.noted = row.pk


@receiver(pre_save, sender=Plain)
def note_try(instance: Any, **kwargs: object) -> None:
    """Note an id that a refused INSERT takes off again."""
    instance.tried = instance.pk


def note_ids(*rows: Any) -> None:
    """Note the ids that objects have got without a row."""
    ids = [row.pk for row in rows if row.pk and row.pk != getattr(row, "noted", None)]
    for row in rows:
        row.noted = row.pk
    if ids:
        counter = counter_of(type(rows[0]).__name__)
        note("had", counter, *spans_of(number_of(str(id)) for id in ids))


def name_of(row: Any) -> str:
    """Return the text by which a row is known to be its writer's."""
    if isinstance(row, OrderLine):
        return row.order.name
    name: str = row.email if isinstance(row, Person) else row.name
    return name


def is_refusal() -> bool:
    """Whether the error that is being handled is that of a unique column."""
    return isinstance(sys.exception(), IntegrityError)


ROWS = {
    "assign_ids",
    "create",
    "save",
    "bulk_create",
    "get_or_create",
    "create_integer",
    "bulk_create_integer",
    "create_plain",
    "bulk_create_plain",
    "explicit",
    "gapless",
    "create_child",
    "create_line",
    "refused",
    "save_again",
}
Operation = Callable[..., Any]
