import pytest

from django_hilo.identifiers import parse
from tests.long.fellows.market.models import Region, Shelf, Staff

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.parametrize("model", [Shelf, Region, Staff]),
]


def tree(model):
    return [(node.get_depth(), node.name) for node in model.get_tree(parent=None)]


@pytest.fixture
def root(model):
    root = model.add_root(name="root")
    for name in ("a", "b", "c"):
        model.objects.get(pk=root.pk).add_child(name=name)
    return model.objects.get(pk=root.pk)


def named(model, name):
    return model.objects.get(name=name)


def test_nodes_get_ids(root, model):
    nodes = model.objects.order_by("id__number")
    assert [node.name for node in nodes] == ["root", "a", "b", "c"]
    assert [parse(node.pk).number for node in nodes] == [1, 2, 3, 4]
    assert named(model, "b").get_parent() == root
    assert [child.name for child in root.get_children()] == ["a", "b", "c"]
    sibling = named(model, "a").add_sibling("sorted-sibling", name="aa")
    assert parse(sibling.pk).number == 5
    assert tree(model) == [(1, "root"), (2, "a"), (2, "aa"), (2, "b"), (2, "c")]


def test_moves_keep_ids(root, model):
    before = dict(model.objects.values_list("name", "pk"))
    named(model, "c").move(named(model, "a"), "sorted-child")
    named(model, "b").move(root, "sorted-sibling")
    assert tree(model) == [(1, "b"), (1, "root"), (2, "a"), (3, "c")]
    assert dict(model.objects.values_list("name", "pk")) == before
    assert [node.name for node in named(model, "c").get_ancestors()] == ["root", "a"]
    named(model, "a").delete()
    assert tree(model) == [(1, "b"), (1, "root")]


def test_a_dump_and_its_loading(root, model):
    named(model, "c").move(named(model, "a"), "sorted-child")
    before, ids = tree(model), set(model.objects.values_list("pk", flat=True))
    dumped = model.dump_bulk()
    model.objects.all().delete()
    given = model.load_bulk(dumped, keep_ids=True)
    assert tree(model) == before
    assert set(given) == ids == set(model.objects.values_list("pk", flat=True))
    new = model.load_bulk(dumped)
    assert not set(new) & ids
    assert len(set(new)) == 4


def test_the_pages_of_the_admin(root, model, pages):
    node = named(model, "b")
    pages.get(pages.list(model))
    moved = {"node_id": node.pk, "sibling_id": named(model, "a").pk, "as_child": "1"}
    assert pages.client.post(pages.list(model) + "move/", moved).content == b"OK"
    assert named(model, "b").get_parent() == named(model, "a")
    page = pages.get(pages.of(node))
    assert f'value="{named(model, "a").pk}"' in page
    form = {"name": "z", "treebeard_position": "sorted-child"}
    pages.post(pages.of(node), {**form, "treebeard_ref_node": root.pk})
    assert named(model, "z").get_parent() == root
    add = {**form, "name": "new", "treebeard_ref_node": node.pk}
    pages.post(pages.list(model) + "add/", add)
    assert named(model, "new").get_parent() == named(model, "z")
    assert parse(named(model, "new").pk).number == 5
