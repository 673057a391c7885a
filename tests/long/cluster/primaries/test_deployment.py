"""What the commands for administrators say on a healthy cluster."""


def test_the_deploy_checks_find_nothing(cluster, python):
    for node in cluster.nodes:
        python(node, "reserve('checked'); reserve('checked', node_tag='')")
    for node in cluster.nodes:
        said = python(
            node,
            """
from django.core.management import call_command
call_command("check", deploy=True, tags=["django_hilo", "database"],
             databases=["default"], fail_level="WARNING")
""",
        )
        assert "no issues" in said


def test_one_node_tag_for_all_is_reported(cluster, python):
    python(cluster.nodes[0], "reserve('checked')")
    said = python(
        cluster.nodes[0],
        """
from django.db import transaction
from django_hilo.checks.deployment import check_servers
from django_hilo.models import HiLoDocument
with transaction.atomic():
    HiLoDocument.objects.exclude(node_tag__in=["", "A"]).delete()
    print(*(each.id for each in check_servers(["default"])))
    transaction.set_rollback(True)
""",
    )
    assert "django_hilo.W035" in said


def test_max_is_raised_on_all_nodes_at_once(cluster, python):
    one, other, _ = cluster.nodes
    create = "from tests.apps.numbers.models import Box\nBox.objects.create(label='{}')"
    python(one, create.format("first"))
    one.execute("USE hilo", "UPDATE numbers_box SET id = 5000")
    python(
        other,
        """
from django.core.management import call_command
call_command("hilo_raise_max")
""",
    )
    python(one, create.format("second"))
    assert other.read("SELECT MAX(id) FROM numbers_box") == [(5001,)]
