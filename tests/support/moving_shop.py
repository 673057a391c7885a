"""A shop whose keys are to be moved, with whatever may refer to one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.settings import CONTRIB, MIDDLEWARE, TEMPLATES
from tests.support.projects import Project, project_in

MODELS = """
    import uuid
    from django.contrib.contenttypes.fields import GenericForeignKey
    from django.contrib.contenttypes.models import ContentType
    from django.db import models
    from django_hilo.fields import HiLoField
    from django_hilo.managers import HiLoManager

    class Customer(models.Model):
        {key}
        made = models.DateTimeField(auto_now_add=True)
        name = models.CharField(max_length=50, default="")
        parent = models.ForeignKey(
            "self", models.CASCADE, null=True, related_name="children"
        )
        friends = models.ManyToManyField("self", symmetrical=False)
        class Meta:
            db_table = "shop's customers"
            unique_together = [("id", "name"), ("parent", "name")]

    class Company(Customer):
        tax = models.CharField(max_length=10)

    class Passport(models.Model):
        customer = models.OneToOneField(Customer, models.CASCADE, primary_key=True)
        number = models.CharField(max_length=10)

    class Visa(models.Model):
        passport = models.ForeignKey(Passport, models.CASCADE, db_column="pass")
        company = models.ForeignKey(Company, models.CASCADE, null=True)
        old = models.ForeignKey(
            Customer, models.DO_NOTHING, db_constraint=False, related_name="+",
            to_field="id", null=True,
        )
        class Meta:
            constraints = [
                models.UniqueConstraint(fields=["passport", "company"], name="one_visa")
            ]
            indexes = [models.Index(fields=["company", "-passport"], name="visa_index")]

    class Club(models.Model):
        name = models.CharField(max_length=50)
        members = models.ManyToManyField(Customer, through="Member")
        guests = models.ManyToManyField(Customer, related_name="+")

    class Member(models.Model):
        club = models.ForeignKey(Club, models.CASCADE)
        customer = models.ForeignKey(Customer, models.CASCADE)
        since = models.IntegerField()
        class Meta:
            unique_together = [("club", "customer")]

    class Tag(models.Model):
        text = models.CharField(max_length=20)
        content_type = models.ForeignKey(ContentType, models.CASCADE)
        object_id = models.{object_id}
        target = GenericForeignKey()
        class Meta:
            indexes = [models.Index(fields=["content_type", "object_id"], name="tags")]
"""
INTEGER = "id = models.BigAutoField(primary_key=True)"
UUID = "id = models.UUIDField(primary_key=True, default=uuid.uuid4)"
HILO = "id = HiLoField(primary_key=True); objects = HiLoManager()"

# n of each, with relations in all directions.
FILL = """
    import sys
    from django.contrib.admin.models import ADDITION, LogEntry
    from django.contrib.auth.models import User
    from django.contrib.contenttypes.models import ContentType
    from shop.models import *
    n = int(sys.argv[1])
    user = User.objects.create(username="someone")
    made = []
    for each in range(n):
        if each % 3:
            made.append(Customer.objects.create(name=f"c{each}"))
        else:
            made.append(Company.objects.create(name=f"c{each}", tax=str(each)))
    Customer.objects.create(name="gone").delete()
    companies = list(Company.objects.order_by("name"))
    clubs = [Club.objects.create(name=f"club{each}") for each in range(3)]
    for each, customer in enumerate(made):
        if each % 2:
            customer.parent_id = made[each // 2].pk
            customer.save()
        customer.friends.add(*made[each // 3 : each // 3 + 2])
        passport = Passport.objects.create(customer_id=customer.pk, number=str(each))
        company = companies[each % len(companies)] if each % 4 else None
        Visa.objects.create(passport=passport, company=company, old_id=made[-each].pk)
        Member.objects.create(club=clubs[each % 3], customer_id=customer.pk, since=each)
        clubs[each % 2].guests.add(customer.pk)
        Tag.objects.create(text=f"t{each}", target=customer)
        for model in (Customer, type(customer)):
            LogEntry.objects.create(
                user=user, content_type=ContentType.objects.get_for_model(model),
                object_id=str(customer.pk), object_repr=customer.name,
                action_flag=ADDITION, change_message="",
            )
    Tag.objects.create(text="club", target=clubs[0])
"""
# By names instead of keys: the same before and after.
RELATIONS = """
    import json
    from django.contrib.admin.models import LogEntry
    from shop.models import *
    def listed(rows, *names):
        return sorted(map(list, rows.values_list(*names)), key=str)
    print(json.dumps({
        "keys": {each.name: str(each.pk) for each in Customer.objects.all()},
        "parents": listed(Customer.objects, "name", "parent__name"),
        "friends": listed(Customer.objects, "name", "friends__name"),
        "companies": listed(Company.objects, "name", "tax", "customer_ptr__name"),
        "passports": listed(Passport.objects, "number", "customer__name"),
        "visas": listed(
            Visa.objects, "passport__customer__name", "company__name", "old__name"
        ),
        "members": listed(Club.objects, "name", "members__name", "member__since"),
        "guests": listed(Club.objects, "name", "guests__name"),
        "tags": sorted([tag.text, tag.target.name] for tag in Tag.objects.all()),
        "log": sorted(
            [e.object_repr, e.content_type.model, e.get_edited_object().name]
            for e in LogEntry.objects.all()
        ),
    }))
"""


def models(key: str, object_id: str = "CharField(max_length=64)") -> str:
    return MODELS.format(key=key, object_id=object_id)


@contextmanager
def shop_in(folder: Path, key: str) -> Iterator[Project]:
    """Make a shop with keys of a kind, migrated, and without rows."""
    with project_in(folder) as project:
        project.set(
            INSTALLED_APPS=[*CONTRIB, "django_hilo", "shop"],
            MIDDLEWARE=MIDDLEWARE,
            TEMPLATES=TEMPLATES,
        )
        project.write("shop/models.py", models(key))
        project.manage("makemigrations", "shop", "-v0")
        project.manage("migrate", "-v0")
        yield project


def move(project: Project, arguments: str = "") -> None:
    """Change the key to a HiLoField, by a migration that is written."""
    project.write("shop/models.py", models(HILO))
    project.manage("hilo_move_plan", "shop", "--write", "-n", "hilo", "-v0")
    file = project.folder / "shop/migrations/0002_hilo.py"
    text = file.read_text()
    assert text.count("MoveToHiLo(") == 1, text
    file.write_text(text.replace("MoveToHiLo(", f"MoveToHiLo({arguments}"))
