from collections import Counter
from typing import Any

from django.db import migrations

import django_hilo.fields
from django_hilo.counters import seed_gapless_number

LOOK = "INV-{issued_on.year}-{number:04}"


def number_each_year(apps: Any, schema_editor: Any) -> None:
    """Number the invoices of earlier demos, in the order of their ids."""
    using = schema_editor.connection.alias
    invoices = apps.get_model("shop", "Invoice").objects.using(using)
    counts: Counter[int] = Counter()
    rows = invoices.order_by("id__number").values_list("pk", "issued_on")
    for pk, day in list(rows):
        counts[day.year] += 1
        number = LOOK.format(issued_on=day, number=counts[day.year])
        invoices.filter(pk=pk).update(number=number)
    for year, last in counts.items():
        seed_gapless_number(f"invoices.{year}", last, using)


class Migration(migrations.Migration):
    dependencies = [
        ("django_hilo", "0001_initial"),
        ("shop", "0005_numbers_indexed"),
    ]

    operations = [
        migrations.AddField(
            model_name="invoice",
            name="number",
            field=django_hilo.fields.GaplessIdField(
                look=LOOK,
                max_length=64,
                null=True,
                per=("issued_on.year",),
                unique=True,
                verbose_name="number",
            ),
        ),
        migrations.RunPython(number_each_year, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="invoice",
            name="number",
            field=django_hilo.fields.GaplessIdField(
                look=LOOK,
                max_length=64,
                per=("issued_on.year",),
                unique=True,
                verbose_name="number",
            ),
        ),
    ]
