import pytest
from django.db import ProgrammingError

from tests.long.fellows.workshop.models import Theme, Topic
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db


def family(model):
    """Return the keys of a node and its ten children, as the tree has them."""
    top = model.objects.create()
    for _ in range(10):
        model.objects.create(parent=top)
    assert {child.pk for child in top.descendants()} == {
        child.pk for child in top.children.all()
    }
    assert list(top.children.first().ancestors()) == [top]
    return [node.pk for node in model.objects.with_tree_fields()]


def test_a_tree():
    assert Topic.check() == []
    assert family(Topic) == [f"topics/{number}-A" for number in range(1, 12)]


def test_without_what_the_page_says():
    """PostgreSQL joins no lists of texts of a length; others sort keys as texts."""
    if CHOSEN == "postgres":
        with pytest.raises(ProgrammingError, match=r"character varying\(64\)\[\]"):
            family(Theme)
        return
    assert family(Theme)[:3] == ["themes/1-A", "themes/10-A", "themes/11-A"]
