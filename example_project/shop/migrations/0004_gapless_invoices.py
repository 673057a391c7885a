from typing import Any

from django.db import migrations

import django_hilo.fields
from django_hilo.counters import seed_gapless_number


def number_without_gaps(apps: Any, schema_editor: Any) -> None:
    """Number the invoices of earlier demos by their days."""
    using = schema_editor.connection.alias
    invoices = apps.get_model("shop", "Invoice").objects.using(using)
    ordered = invoices.order_by("issued_on", "order__number")
    ids = list(ordered.values_list("pk", flat=True))
    for number, old in enumerate(ids, start=1):
        invoices.filter(pk=old).update(id=f"invoices/{number}")
    if ids:
        seed_gapless_number("invoices", len(ids), using)
    counters = apps.get_model("django_hilo", "HiLoDocument").objects.using(using)
    counters.filter(collection="invoices").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("django_hilo", "0001_initial"),
        ("shop", "0003_announcements"),
    ]

    operations = [
        migrations.RunPython(number_without_gaps, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="invoice",
            name="id",
            field=django_hilo.fields.GaplessIdField(
                max_length=64, primary_key=True, serialize=False
            ),
        ),
    ]
