"""HiLoBigAutoField as DEFAULT_AUTO_FIELD of a project with apps of others."""

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.settings import CONTRIB, MIDDLEWARE, TEMPLATES
from tests.support.databases import CHOSEN
from tests.support.projects import Project, project_in

# Small apps that leave the type of their keys to the project.
OTHERS = ["siteblocks", "hitcount"]
missing = [name for name in OTHERS if find_spec(name) is None]
if os.environ.get("HILO_TEST_REQUIRE") == "1":
    assert not missing, f"pip install -r requirements/test.txt: {missing}"
pytestmark = pytest.mark.skipif(
    bool(missing), reason=f"Not installed: {', '.join(missing)}."
)

APPS = [
    *CONTRIB,
    "django.contrib.sites",
    "django.contrib.flatpages",
    "django.contrib.redirects",
    "django_hilo",
    *OTHERS,
    "shop",
]
SETTINGS = {
    "INSTALLED_APPS": APPS,
    "DEFAULT_AUTO_FIELD": "django_hilo.fields.HiLoBigAutoField",
    # A project keeps the migrations that its setting makes for apps of others.
    "MIGRATION_MODULES": {name: f"migrations_of.{name}" for name in OTHERS},
    "MIDDLEWARE": MIDDLEWARE,
    "SITE_ID": 1,
    "TEMPLATES": TEMPLATES,
}
MODELS = """
    from django.contrib.auth.models import User
    from django.db import models
    from hitcount.models import BlacklistIP
    from siteblocks.models import Block

    class Page(models.Model):
        title = models.CharField(max_length=50, unique=True)
        block = models.ForeignKey(Block, models.CASCADE)
        refused = models.ManyToManyField(BlacklistIP)
        author = models.ForeignKey(User, models.CASCADE, null=True)
"""
USE = """
    from django.contrib.auth.models import Group, User
    from django.contrib.flatpages.models import FlatPage
    from django.contrib.redirects.models import Redirect
    from django.contrib.sites.models import Site
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from hitcount.models import BlacklistIP, Hit, HitCount
    from shop.models import Page
    from siteblocks.models import Block

    user = User.objects.create_superuser("root", "", "x")
    user.groups.add(Group.objects.create(name="g"))
    site = Site.objects.get_current()
    FlatPage.objects.create(url="/a/", title="a").sites.add(site)
    Redirect.objects.create(site=site, old_path="/b/")
    blocks = Block.objects.bulk_create([Block(alias=f"b{n}") for n in range(40)])
    Block.objects.create(alias="first").delete()
    with CaptureQueriesContext(connection) as queries:
        block = Block.objects.create(alias="last")
    assert len(queries) == 1, queries.captured_queries
    page = Page(title="p", block=block, author=user)
    page.save()
    page.refused.set([BlacklistIP.objects.create(ip=f"10.0.0.{n}") for n in (1, 2)])
    count = HitCount.objects.create(content_object=page)
    Hit.objects.create(hitcount=count, user=user, ip="10.0.0.3")
    for model in Block, BlacklistIP, Hit, HitCount, Page, Page.refused.through:
        assert type(model._meta.pk).__name__ == "HiLoBigAutoField", model
    for model in User, FlatPage, Redirect, Site:
        assert type(model._meta.pk).__name__ == "AutoField", model
    keys = [each.pk for each in blocks] + [block.pk]
    assert len(set(keys)) == 41 and None not in keys
"""
COUNT = """
    from shop.models import Page
    from siteblocks.models import Block
    print(Page.objects.count(), Block.objects.count())
"""
MORE = """
    from hitcount.models import BlacklistIP, HitCount
    from shop.models import Page
    from siteblocks.models import Block
    blocks = [Block.objects.create(alias="more") for _ in range(40)]
    page = Page.objects.create(title="more", block=blocks[0])
    page.refused.add(BlacklistIP.objects.create(ip="10.0.0.4"))
    HitCount.objects.create(content_object=page)
"""
DELETE = """
    from shop.models import Page
    from siteblocks.models import Block
    Block.objects.get(alias="last").delete()
    assert not Page.objects.filter(title="p").exists()
"""


@pytest.fixture
def project(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        project.set(**SETTINGS)
        project.write("shop/models.py", MODELS)
        for name in OTHERS:
            project.write(f"migrations_of/{name}/__init__.py", "")
        yield project


def test_a_project_from_the_start(project, tmp_path):
    project.migrate(*OTHERS, "shop")
    made = (project.folder / "shop/migrations/0001_initial.py").read_text()
    assert "django_hilo.fields.HiLoBigAutoField(" in made
    project.manage("check", "--database=default", "--fail-level=WARNING")
    project.run(USE)

    dump = tmp_path / "dump.json"
    project.manage(
        "dumpdata",
        "--natural-foreign",
        *("-e", "contenttypes", "-e", "auth.permission", "-e", "admin"),
        f"-o{dump}",
    )
    counters = [
        each for each in json.loads(dump.read_text()) if "hilo" in each["model"]
    ]
    assert bool(counters) == (CHOSEN != "postgres")
    assert project.run(DELETE + COUNT) == "0 40"
    project.manage("flush", "--no-input", "-v0")
    project.manage("loaddata", str(dump), "-v0")
    assert project.run(COUNT + MORE + COUNT) == "1 41\n2 81"
    sequences = project.manage("sqlsequencereset", "siteblocks", "shop")
    assert bool(sequences) == (CHOSEN == "postgres")

    project.write("news/models.py", MODELS.replace("Page", "Story"))
    project.set(INSTALLED_APPS=[*APPS, "news"])
    project.migrate("news")
    project.run(
        "from news.models import Story; from siteblocks.models import Block\n"
        "Story.objects.create(title='s', block=Block.objects.first())"
    )


def test_a_project_that_has_their_tables(project):
    """Their own migrations made AutoFields: ours widen them and go on over rows."""
    project.set(
        INSTALLED_APPS=[name for name in APPS if name != "shop"], MIGRATION_MODULES={}
    )
    project.set(DEFAULT_AUTO_FIELD="django.db.models.AutoField")
    project.manage("migrate", "-v0")
    project.run(
        "from siteblocks.models import Block\n"
        "for n in range(50): Block.objects.create(alias=str(n))"
    )
    project.set(DEFAULT_AUTO_FIELD="django_hilo.fields.HiLoBigAutoField")
    # The columns are still those of AutoFields: that is enough to begin with.
    project.run(
        "from siteblocks.models import Block\n"
        "made = [Block.objects.create(alias='new').pk for n in range(50)]\n"
        "assert min(made) > 50 and len(set(made)) == 50, made"
    )
    asked = project.manage("makemigrations", "siteblocks", "--dry-run")
    assert "Alter field id on block" in asked
    # Their own migrations come along into the project's folder.
    for name in OTHERS:
        package = find_spec(f"{name}.migrations").submodule_search_locations[0]
        for file in os.listdir(package):
            if file.startswith("0"):
                with open(os.path.join(package, file)) as source:
                    text = source.read()
                (project.folder / f"migrations_of/{name}/{file}").write_text(text)
    project.set(MIGRATION_MODULES=SETTINGS["MIGRATION_MODULES"])
    project.migrate(*OTHERS)
    project.run(
        "from siteblocks.models import Block\n"
        "made = [Block.objects.create(alias='new').pk for n in range(50)]\n"
        "assert min(made) > 100 and len(set(made)) == 50, made"
    )
