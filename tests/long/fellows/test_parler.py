import pytest
from django.core.cache import cache
from django.utils import translation

from tests.long.fellows.market.models import Dish, DishText, Wine

pytestmark = pytest.mark.django_db

both = pytest.mark.parametrize("model", [Dish, Wine])


@pytest.fixture(autouse=True)
def empty_cache():
    """Parler caches translations by key, also those of a test that was rolled back."""
    cache.clear()


def translated(model):
    obj = model.objects.create(name="cheese")
    obj.set_current_language("fr")
    obj.name = "fromage"
    obj.save()
    return obj


@both
def test_translations(model, statements):
    first, second = translated(model), translated(model)
    assert statements(lambda: model.objects.create(name="bread")) == ["INSERT"] * 2
    assert model.objects.get(pk=first.pk).name == "cheese"
    with translation.override("fr"):
        assert model.objects.get(pk=first.pk).name == "fromage"
        assert set(model.objects.translated(name="fromage")) == {first, second}
    prefetched = model.objects.prefetch_related("translations").get(pk=first.pk)
    assert set(prefetched.get_available_languages()) == {"en", "fr"}
    first.delete_translation("fr")
    second.delete()
    names = first.translations.model.objects.order_by("pk")
    assert list(names.values_list("master_id", "name")) == [
        (first.pk, "cheese"),
        (model.objects.translated(name="bread").get().pk, "bread"),
    ]


@both
def test_languages_of_a_query(model):
    created = model.objects.language("fr").create(name="fromage")
    assert list(created.get_available_languages()) == ["fr"]
    same, is_new = model.objects.language("fr").get_or_create(pk=created.pk)
    assert (same.name, is_new) == ("fromage", False)


def test_ids_before_the_insert():
    dishes = [Dish(name=name) for name in ("cheese", "bread")]
    Dish.objects.assign_ids(dishes)
    assert [dish.pk for dish in dishes] == ["dishes/1-A", "dishes/2-A"]
    for dish in dishes:
        dish.save()
    assert list(DishText.objects.order_by("id__number").values_list("pk", "name")) == [
        ("DishTexts/1-A$dishes/1-A", "cheese"),
        ("DishTexts/2-A$dishes/2-A", "bread"),
    ]


@both
def test_the_pages_of_the_admin(model, pages):
    pages.post(f"{pages.list(model)}add/", {"name": "cheese"})
    obj = model.objects.get()
    assert "cheese" in pages.get(pages.list(model))
    pages.post(f"{pages.of(obj)}?language=fr", {"name": "fromage"})
    assert 'value="fromage"' in pages.get(f"{pages.of(obj)}?language=fr")
    assert 'value="cheese"' in pages.get(f"{pages.of(obj)}?language=en")
    pages.post(pages.of(obj, "change/delete-translation/fr"), {"post": "yes"})
    assert list(model.objects.get().get_available_languages()) == ["en"]
    pages.post(pages.of(obj, "delete"), {"post": "yes"})
    assert not obj.translations.model.objects.exists()
