import pytest
from django.core.exceptions import ValidationError

from django_hilo.models import HiLoDocument, ServerPrefix


@pytest.mark.django_db
def test_a_document_is_kept_in_lower_case_under_its_natural_key():
    document = HiLoDocument.objects.create(collection="OrderLines", node_tag="EU")
    assert (document.pk, document.collection) == ("orderlines/EU", "orderlines")
    assert str(document) == "orderlines/EU"
    assert document.ticket


@pytest.mark.parametrize(
    ("instance", "field"),
    [
        (HiLoDocument(collection="1x", node_tag="A"), "collection"),
        (HiLoDocument(collection="orders", node_tag="a"), "node_tag"),
        (ServerPrefix(node_tag="A", prefix="7"), "prefix"),
        (ServerPrefix(node_tag="A", prefix="a b/"), "prefix"),
        (ServerPrefix(node_tag="A", prefix="a$/"), "prefix"),
        (ServerPrefix(node_tag="abc", prefix="x/"), "node_tag"),
    ],
)
def test_values_outside_the_grammar(instance, field):
    with pytest.raises(ValidationError) as caught:
        instance.clean_fields()
    assert field in caught.value.message_dict


def test_a_prefix_shows_itself():
    prefix = ServerPrefix(node_tag="A", prefix="North/")
    prefix.clean_fields()
    assert str(prefix) == "A: North/"
