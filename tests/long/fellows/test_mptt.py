import pytest

from django_hilo.identifiers import parse
from tests.long.fellows.market.models import Genre

pytestmark = pytest.mark.django_db


@pytest.fixture
def root():
    root = Genre.objects.create(name="root")
    for name in ("a", "b", "c"):
        Genre.objects.create(name=name, parent=root)
    root.refresh_from_db()
    return root


def tree():
    return [(node.level, node.name) for node in Genre.objects.all()]


def named(name):
    return Genre.objects.get(name=name)


def test_moves_keep_ids(root):
    before = dict(Genre.objects.values_list("name", "pk"))
    assert before["c"] == "genres/4-A"
    named("c").move_to(named("a"))
    node = named("b")
    node.parent = None
    node.save()
    assert tree() == [(0, "b"), (0, "root"), (1, "a"), (2, "c")]
    assert dict(Genre.objects.values_list("name", "pk")) == before
    named("a").delete()
    assert tree() == [(0, "b"), (0, "root")]
    Genre.objects.rebuild()
    assert tree() == [(0, "b"), (0, "root")]


def test_in_bulk(root):
    """As mptt says: with any numbers for the tree, which are counted afterwards."""
    numbers = dict.fromkeys(("lft", "rght", "tree_id", "level"), 0)
    children = [Genre(name=name, parent=root, **numbers) for name in ("x", "y")]
    created = Genre.objects.bulk_create(children)
    Genre.objects.rebuild()
    assert {parse(node.pk).number for node in created} == {5, 6}
    assert [node.name for node in named("root").get_children()] == list("abcxy")


def test_the_pages_of_the_admin(root, pages):
    assert 'data-pk="genres/2-A"' in pages.get(pages.list(Genre))
    moved = {
        "cmd": "move_node",
        "position": "last-child",
        "cut_item": named("b").pk,
        "pasted_on": named("a").pk,
    }
    answer = pages.client.post(
        pages.list(Genre), moved, headers={"x-requested-with": "XMLHttpRequest"}
    )
    assert answer.content == b"OK, moved."
    assert named("b").parent == named("a")
    pages.post(pages.of(named("b")), {"name": "z", "parent": root.pk})
    assert named("z").parent == root
    pages.post(pages.list(Genre) + "add/", {"name": "new", "parent": named("z").pk})
    assert parse(named("new").pk).number == 5
