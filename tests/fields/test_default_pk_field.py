"""HiLoField as the key of all models that declare none, as DEFAULT_PK_FIELD will be."""

import pytest

from tests.support.projects import project_in

# No Django has the setting yet.
KEYS = """
    from django.db.models.options import Options

    def of_the_project(self, before=Options._get_default_pk_class):
        if self.app_label != "shop":
            return before(self)
        from django_hilo.fields import HiLoField

        return HiLoField

    Options._get_default_pk_class = of_the_project
"""
MODELS = """
    from django.db import models

    class Tag(models.Model):
        pass

    class Post(models.Model):
        tags = models.ManyToManyField(Tag)

    class BlogPost(models.Model):
        tags = models.ManyToManyField(Tag)
"""
USE = """
    from shop.models import *

    for model in Post, BlogPost:
        post = model.objects.create()
        post.tags.set([Tag.objects.create(), Tag.objects.create()])
        post.tags.create()
        print(sorted(model.tags.through.objects.values_list("id", flat=True)))
"""


@pytest.mark.django_db(transaction=True)
def test_a_many_to_many_table_is_counted_by_its_own_name(tmp_path):
    with project_in(tmp_path) as project:
        project.set(INSTALLED_APPS=["django_hilo", "shop"])
        project.write("shop/__init__.py", KEYS)
        project.write("shop/models.py", MODELS)
        project.migrate("shop")
        assert project.run(USE).splitlines() == [
            "['post_tags/1-A', 'post_tags/2-A', 'post_tags/3-A']",
            "['BlogPost_tags/1-A', 'BlogPost_tags/2-A', 'BlogPost_tags/3-A']",
        ]
