import pytest
import strawberry
import strawberry_django
from strawberry import auto, relay
from strawberry_django import mutations
from strawberry_django.fields.types import field_type_map

from django_hilo.fields import HiLoBigAutoField, HiLoField
from tests.long.fellows.market import models

pytestmark = pytest.mark.django_db

# It looks at the exact class of a field.
field_type_map[HiLoField] = strawberry.ID
field_type_map[HiLoBigAutoField] = strawberry.ID


@strawberry_django.type(models.Order)
class Order:
    id: auto
    name: auto
    invoices: list["Invoice"]


@strawberry_django.type(models.Invoice)
class Invoice:
    id: auto
    order: Order


@strawberry_django.type(models.Ticket)
class Ticket:
    id: auto
    name: auto


@strawberry_django.input(models.Order)
class OrderInput:
    name: auto


@strawberry_django.input(models.Invoice)
class InvoiceInput:
    order: auto


@strawberry_django.input(models.Ticket)
class TicketInput:
    name: auto


@strawberry_django.partial(models.Order)
class OrderChange:
    id: auto
    name: auto


@strawberry_django.partial(models.Ticket)
class TicketChange:
    id: auto
    name: auto


@strawberry_django.type(models.Invoice)
class InvoiceNode(relay.Node):
    total: auto


@strawberry_django.type(models.Ticket)
class TicketNode(relay.Node):
    name: auto


@strawberry.type
class Query:
    node: relay.Node = relay.node()
    order: Order = strawberry_django.field()
    orders: list[Order] = strawberry_django.field()
    ticket: Ticket = strawberry_django.field()


@strawberry.type
class Mutation:
    create_order: Order = mutations.create(OrderInput)
    create_invoice: Invoice = mutations.create(InvoiceInput)
    create_ticket: Ticket = mutations.create(TicketInput)
    update_order: Order = mutations.update(OrderChange)
    update_ticket: Ticket = mutations.update(TicketChange)
    delete_order: Order = mutations.delete(OrderChange)
    delete_ticket: Ticket = mutations.delete(TicketChange)


schema = strawberry.Schema(Query, Mutation, types=[InvoiceNode, TicketNode])


def run(query: str, **variables):
    answer = schema.execute_sync(query, variable_values=variables)
    assert not answer.errors, answer.errors
    return answer.data


@pytest.mark.parametrize("kind", ["Order", "Ticket"])
def test_create_read_change_delete(kind):
    made = run(f'mutation {{ create{kind}(data: {{name: "tea"}}) {{ id name }} }}')
    id = str(getattr(models, kind).objects.get().pk)
    assert made == {f"create{kind}": {"id": id, "name": "tea"}}
    query = f"query ($id: ID!) {{ {kind.lower()}(pk: $id) {{ id name }} }}"
    assert run(query, id=id) == {kind.lower(): {"id": id, "name": "tea"}}
    change = (
        f"mutation ($data: {kind}Change!) {{ update{kind}(data: $data) {{ name }} }}"
    )
    changed = run(change, data={"id": id, "name": "coffee"})
    assert changed == {f"update{kind}": {"name": "coffee"}}
    delete = f"mutation ($data: {kind}Change!) {{ delete{kind}(data: $data) {{ id }} }}"
    assert run(delete, data={"id": id}) == {f"delete{kind}": {"id": id}}
    assert not getattr(models, kind).objects.exists()


@pytest.mark.parametrize("kind", ["Invoice", "Ticket"])
def test_nodes_of_relay(kind):
    of = {"order": models.Order.objects.create()} if kind == "Invoice" else {}
    made = getattr(models, kind).objects.create(**of)
    id = relay.to_base64(f"{kind}Node", made.pk)
    found = run("query ($id: ID!) { node(id: $id) { id __typename } }", id=id)
    assert found == {"node": {"id": id, "__typename": f"{kind}Node"}}


def test_relations_by_their_ids():
    models.Order.objects.create(name="tea")
    create = (
        "mutation ($order: ID!) { createInvoice(data: {order: {set: $order}}) { id } }"
    )
    invoice = {"id": "invoices/1-A$orders/1-A"}
    assert run(create, order="orders/1-A") == {"createInvoice": invoice}
    assert run("{ orders { id invoices { id } } }") == {
        "orders": [{"id": "orders/1-A", "invoices": [invoice]}]
    }
