import django_filters
import pytest
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework import routers, serializers, viewsets

from django_hilo.identifiers import ID_PATTERN
from tests.long.fellows.market.models import Invoice, Order

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


class OrderFilter(django_filters.FilterSet):
    class Meta:
        model = Order
        fields = {"id": ["exact", "in", "icontains", "number", "number__lt"]}


class InvoiceFilter(django_filters.FilterSet):
    orders = django_filters.ModelMultipleChoiceFilter(
        field_name="order", queryset=Order.objects.all()
    )

    class Meta:
        model = Invoice
        fields = {
            "id": ["exact", "node_tag", "anchor"],
            "order": ["exact"],
            "order__id": ["number"],
        }


class OrderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "name"]


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("id__number")
    serializer_class = OrderSerializer
    lookup_value_regex = ID_PATTERN
    filter_backends = [DjangoFilterBackend]
    filterset_fields = {"id": ["exact", "in", "number", "number__gte"]}


router = routers.SimpleRouter()
router.register("orders", OrderViewSet)
urlpatterns = router.urls


@pytest.fixture
def orders():
    return Order.objects.bulk_create([Order(name=f"{n}") for n in range(1, 13)])


def numbers(filterset):
    assert filterset.is_valid(), filterset.errors
    return [int(order.pk.split("/")[1][:-2]) for order in filterset.qs]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"id": "orders/2-A"}, {2}),
        ({"id__in": "orders/2-A,orders/10-A,orders/99-A"}, {2, 10}),
        ({"id__icontains": "ders/12-"}, {12}),
        ({"id__number": "10"}, {10}),
        ({"id__number__lt": "3"}, {1, 2}),
        ({"id": "' OR 1=1"}, set()),
    ],
)
def test_by_id_and_by_number(orders, query, expected):
    assert set(numbers(OrderFilter(query))) == expected


def test_by_relations_anchors_and_tags(orders):
    invoices = [Invoice.objects.create(order=order) for order in orders[:4]]

    def found(query):
        filterset = InvoiceFilter(query)
        assert filterset.is_valid(), filterset.errors
        return list(filterset.qs)

    second = invoices[1]
    assert second.pk == "invoices/2-A$orders/2-A"
    assert found({"id": second.pk}) == [second]
    assert found({"id__anchor": "orders/2-A"}) == [second]
    assert found({"order": "orders/2-A"}) == [second]
    assert found({"order__id__number": "2"}) == [second]
    assert len(found({"id__node_tag": "A"})) == 4
    both = found({"orders": ["orders/2-A", "orders/3-A"]})
    assert set(both) == {second, invoices[2]}
    assert not InvoiceFilter({"order": "orders/77-A"}).is_valid()


def test_over_rest(orders, client):
    def ids(url):
        answer = client.get(url)
        assert answer.status_code == 200, answer.content
        return [row["id"] for row in answer.json()]

    assert ids("/orders/?id=orders/10-A") == ["orders/10-A"]
    assert ids("/orders/?id__number__gte=11") == ["orders/11-A", "orders/12-A"]
    assert ids("/orders/?id__in=orders/1-A,orders/12-A") == [
        "orders/1-A",
        "orders/12-A",
    ]
    assert client.get("/orders/?id__number=x").status_code == 400


def test_the_schema_of_drf_spectacular(capsys):
    schema = SchemaGenerator().get_schema(public=True)
    validate_schema(schema)
    assert not capsys.readouterr().err  # it prints its warnings
    parameters = {
        each["name"]: each["schema"]["type"]
        for each in schema["paths"]["/orders/"]["get"]["parameters"]
    }
    assert parameters["id"] == "string"
    assert parameters["id__number"] == parameters["id__number__gte"] == "number"
    (path,) = [path for path in schema["paths"] if path.startswith("/orders/{")]
    (key,) = schema["paths"][path]["get"]["parameters"]
    assert key["schema"]["type"] == "string"
    assert key["schema"]["pattern"]
    order = schema["components"]["schemas"]["Order"]
    assert order["properties"]["id"] == {"type": "string", "readOnly": True}
