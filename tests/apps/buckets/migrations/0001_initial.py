import django.db.models.deletion
from django.db import migrations, models

import django_hilo.fields
import django_hilo.managers


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Deal",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        max_length=64, primary_key=True, serialize=False
                    ),
                ),
            ],
            managers=[
                ("objects", django_hilo.managers.HiLoManager()),
            ],
        ),
        migrations.CreateModel(
            name="Parcel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("bucket", django_hilo.fields.BucketField(null=True, source="number")),
                (
                    "number",
                    django_hilo.fields.HiLoField(
                        collection="parcels", max_length=64, null=True, unique=True
                    ),
                ),
                (
                    "deals_bucket",
                    django_hilo.fields.BucketField(null=True, source="deal"),
                ),
                ("size", models.IntegerField(default=0)),
                (
                    "deal",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="buckets.deal",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Part",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        anchor="deal", max_length=128, primary_key=True, serialize=False
                    ),
                ),
                ("size", models.IntegerField(default=0)),
                ("bucket", django_hilo.fields.BucketField(db_index=True)),
                (
                    "deal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="buckets.deal",
                    ),
                ),
            ],
            managers=[
                ("objects", django_hilo.managers.HiLoManager()),
            ],
        ),
        migrations.CreateModel(
            name="Check",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        anchor="part__deal",
                        collection="checks",
                        max_length=128,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("bucket", django_hilo.fields.BucketField(null=True)),
                (
                    "part",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="buckets.part",
                    ),
                ),
            ],
            managers=[
                ("objects", django_hilo.managers.HiLoManager()),
            ],
        ),
    ]
