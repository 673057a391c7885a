import graphene
import pytest
from graphene_django import DjangoObjectType
from graphene_django.converter import convert_django_field, convert_field_to_id
from graphene_django.registry import Registry

from django_hilo.fields import HiLoField
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db


def schema():
    fields = {"model": Order, "fields": ["id", "name"], "registry": Registry()}
    kind = type("OrderType", (DjangoObjectType,), {"Meta": type("Meta", (), fields)})
    order = graphene.Field(kind, id=graphene.ID(required=True))
    query = {
        "order": order,
        "resolve_order": lambda root, info, id: Order.objects.get(pk=id),
    }
    return graphene.Schema(query=type("Query", (graphene.ObjectType,), query))


def test_ids():
    order = Order.objects.create(name="tea")
    query = "query ($id: ID!) { order(id: $id) { id name } }"
    found = {"order": {"id": "orders/1-A", "name": "tea"}}
    for kind in ("String!", "ID!"):
        known = schema()
        assert f"  id: {kind}\n" in str(known)
        assert known.execute(query, variables={"id": order.pk}).data == found
        convert_django_field.register(HiLoField)(convert_field_to_id)
