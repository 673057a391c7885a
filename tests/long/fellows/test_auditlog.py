import re

import pytest
from auditlog.context import set_actor
from auditlog.models import LogEntry
from django.contrib.auth.models import User

from tests.long.fellows.workshop.models import Machine, Repair, Tool

pytestmark = pytest.mark.django_db

both = pytest.mark.parametrize("model", [Machine, Tool])


def actions_of(entries):
    return [entry.get_action_display() for entry in entries.order_by("pk")]


@both
def test_changes_are_logged(model):
    actor = User.objects.create_user("ann")
    with set_actor(actor):
        obj = model.objects.create(name="saw")
        obj.name = "drill"
        obj.save()
        other = model.objects.create(name="other")
    entries = LogEntry.objects.get_for_object(obj)
    assert actions_of(entries) == actions_of(obj.history) == ["create", "update"]
    assert set(entries) == set(obj.history.all())
    update = entries.get(action=LogEntry.Action.UPDATE)
    assert update.changes == {"name": ["saw", "drill"]}
    assert (update.object_pk, update.actor) == (str(obj.pk), actor)
    found = LogEntry.objects.get_for_objects(model.objects.filter(pk=other.pk))
    assert actions_of(found) == ["create"]
    key = str(obj.pk)
    obj.delete()
    assert actions_of(LogEntry.objects.filter(object_pk=key))[-1] == "delete"


def test_relations_are_logged():
    machine, tool = Machine.objects.create(), Tool.objects.create(name="saw")
    machine.tools.add(tool)
    entry = machine.history.first()
    assert entry.changes["tools"]["operation"] == "add"
    repair = Repair.objects.create(machine=machine)
    created = repair.history.get()
    assert created.object_pk == repair.pk == "repairs/1-A$machines/1-A"
    assert created.changes["machine"] == ["None", machine.pk]
    repair.delete()
    assert not LogEntry.objects.filter(object_pk=created.object_pk).exclude(
        action=LogEntry.Action.DELETE
    )


def test_ids_before_the_insert_are_logged():
    machines = Machine.objects.assign_ids([Machine(name="saw")])
    machines[0].save()
    assert LogEntry.objects.get().object_pk == "machines/1-A"


@both
def test_the_pages_of_the_admin(model, pages):
    obj = model.objects.create(name="saw")
    obj.name = "drill"
    obj.save()
    to = rf'"({pages.list(model)}[^"]+/(?:change|auditlog)/)"'
    [_, log] = re.findall(to, pages.get(pages.list(model)))
    assert "drill" in pages.get(log)
    [link, *others] = re.findall(to, pages.get("/admin/auditlog/logentry/"))
    assert set(others) == {link}
    assert 'value="drill"' in pages.get(link)
    assert link in pages.get(pages.of(obj.history.latest()))
