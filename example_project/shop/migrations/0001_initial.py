from __future__ import annotations

from decimal import Decimal

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import django_hilo.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Customer",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        max_length=64, primary_key=True, serialize=False
                    ),
                ),
                (
                    "code",
                    models.CharField(max_length=10, unique=True, verbose_name="code"),
                ),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "contact",
                    models.CharField(
                        blank=True, max_length=100, verbose_name="contact"
                    ),
                ),
                (
                    "city",
                    models.CharField(blank=True, max_length=60, verbose_name="city"),
                ),
                (
                    "country",
                    models.CharField(blank=True, max_length=60, verbose_name="country"),
                ),
            ],
            options={
                "verbose_name": "customer",
                "verbose_name_plural": "customers",
                "ordering": ("code",),
            },
        ),
        migrations.CreateModel(
            name="Product",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        max_length=64, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(unique=True, verbose_name="number"),
                ),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "quantity_per_unit",
                    models.CharField(
                        blank=True, max_length=60, verbose_name="quantity per unit"
                    ),
                ),
                (
                    "unit_price",
                    models.DecimalField(
                        decimal_places=2,
                        max_digits=10,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0"))
                        ],
                        verbose_name="unit price",
                    ),
                ),
                (
                    "discontinued",
                    models.BooleanField(default=False, verbose_name="discontinued"),
                ),
            ],
            options={
                "verbose_name": "product",
                "verbose_name_plural": "products",
                "ordering": ("number",),
            },
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        max_length=64, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(unique=True, verbose_name="number"),
                ),
                ("ordered_on", models.DateField(verbose_name="ordered on")),
                (
                    "shipped_on",
                    models.DateField(blank=True, null=True, verbose_name="shipped on"),
                ),
                (
                    "freight",
                    models.DecimalField(
                        decimal_places=2,
                        default=Decimal("0"),
                        max_digits=10,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0"))
                        ],
                        verbose_name="freight",
                    ),
                ),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="shop.customer",
                        verbose_name="customer",
                    ),
                ),
            ],
            options={
                "verbose_name": "order",
                "verbose_name_plural": "orders",
                "ordering": ("number",),
            },
        ),
        migrations.CreateModel(
            name="Invoice",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        anchor="order",
                        max_length=128,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("issued_on", models.DateField(verbose_name="issued on")),
                (
                    "total",
                    models.DecimalField(
                        decimal_places=2,
                        max_digits=14,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0"))
                        ],
                        verbose_name="total",
                    ),
                ),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invoices",
                        to="shop.order",
                        verbose_name="order",
                    ),
                ),
            ],
            options={
                "verbose_name": "invoice",
                "verbose_name_plural": "invoices",
                "ordering": ("-issued_on", "-order__number"),
            },
        ),
        migrations.CreateModel(
            name="OrderLine",
            fields=[
                (
                    "id",
                    django_hilo.fields.HiLoField(
                        max_length=64, primary_key=True, serialize=False
                    ),
                ),
                (
                    "unit_price",
                    models.DecimalField(
                        decimal_places=2,
                        max_digits=10,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0"))
                        ],
                        verbose_name="unit price",
                    ),
                ),
                (
                    "quantity",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="quantity",
                    ),
                ),
                (
                    "discount",
                    models.DecimalField(
                        decimal_places=2,
                        default=Decimal("0"),
                        help_text="A fraction: 0.15 takes 15 % off.",
                        max_digits=3,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0")),
                            django.core.validators.MaxValueValidator(Decimal("1")),
                        ],
                        verbose_name="discount",
                    ),
                ),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="shop.order",
                        verbose_name="order",
                    ),
                ),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lines",
                        to="shop.product",
                        verbose_name="product",
                    ),
                ),
            ],
            options={
                "verbose_name": "order line",
                "verbose_name_plural": "order lines",
                "ordering": ("order__number", "product__number"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("order", "product"), name="shop_one_line_per_product"
                    )
                ],
            },
        ),
    ]
