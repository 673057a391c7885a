from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.identifiers import parse
from django_hilo.managers import HiLoManager

CENT = Decimal("0.01")

_not_negative = MinValueValidator(Decimal(0))


class Customer(models.Model):
    id = HiLoField(primary_key=True)
    code = models.CharField(_("code"), max_length=10, unique=True)
    name = models.CharField(_("name"), max_length=100)
    contact = models.CharField(_("contact"), max_length=100, blank=True)
    city = models.CharField(_("city"), max_length=60, blank=True)
    country = models.CharField(_("country"), max_length=60, blank=True)

    objects = HiLoManager()

    class Meta:
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        ordering = ("code",)
        indexes = (models.Index("id__number", name="shop_customers_by_number"),)

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


class Product(models.Model):
    id = HiLoField(primary_key=True)
    number = models.PositiveIntegerField(_("number"), unique=True)
    name = models.CharField(_("name"), max_length=100)
    quantity_per_unit = models.CharField(
        _("quantity per unit"), max_length=60, blank=True
    )
    unit_price = models.DecimalField(
        _("unit price"), max_digits=10, decimal_places=2, validators=[_not_negative]
    )
    discontinued = models.BooleanField(_("discontinued"), default=False)

    objects = HiLoManager()

    class Meta:
        verbose_name = _("product")
        verbose_name_plural = _("products")
        ordering = ("number",)
        indexes = (models.Index("id__number", name="shop_products_by_number"),)

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    id = HiLoField(primary_key=True)
    number = models.PositiveIntegerField(_("number"), unique=True)
    customer = models.ForeignKey(
        Customer, models.PROTECT, related_name="orders", verbose_name=_("customer")
    )
    ordered_on = models.DateField(_("ordered on"))
    shipped_on = models.DateField(_("shipped on"), null=True, blank=True)
    freight = models.DecimalField(
        _("freight"),
        max_digits=10,
        decimal_places=2,
        default=Decimal(0),
        validators=[_not_negative],
    )

    objects = HiLoManager()

    class Meta:
        verbose_name = _("order")
        verbose_name_plural = _("orders")
        ordering = ("number",)
        indexes = (models.Index("id__number", name="shop_orders_by_number"),)

    def __str__(self) -> str:
        return f"{self.number} ({self.pk})"

    def get_absolute_url(self) -> str:
        return reverse("shop:order", args=[self.pk])


class OrderLine(models.Model):
    # The id ends in that of the order, so both have one bucket.
    id = HiLoField(primary_key=True, anchor="order")
    order = models.ForeignKey(
        Order, models.CASCADE, related_name="lines", verbose_name=_("order")
    )
    product = models.ForeignKey(
        Product, models.PROTECT, related_name="lines", verbose_name=_("product")
    )
    unit_price = models.DecimalField(
        _("unit price"), max_digits=10, decimal_places=2, validators=[_not_negative]
    )
    quantity = models.PositiveIntegerField(
        _("quantity"), validators=[MinValueValidator(1)]
    )
    discount = models.DecimalField(
        _("discount"),
        max_digits=3,
        decimal_places=2,
        default=Decimal(0),
        validators=[_not_negative, MaxValueValidator(Decimal(1))],
        help_text=_("A fraction: 0.15 takes 15 % off."),
    )

    objects = HiLoManager()

    class Meta:
        verbose_name = _("order line")
        verbose_name_plural = _("order lines")
        ordering = ("order__number", "product__number")
        indexes = (models.Index("id__number", name="shop_lines_by_number"),)
        constraints = (
            models.UniqueConstraint(
                fields=["order", "product"], name="shop_one_line_per_product"
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def plain_id(self) -> str:
        """The id without its anchor, for pages that show the order's id anyway."""
        return str(parse(self.pk)._replace(anchor=None))

    @property
    def total(self) -> Decimal:
        """The price of the line, rounded to cents."""
        price = self.unit_price * self.quantity * (1 - self.discount)
        return price.quantize(CENT, ROUND_HALF_UP)


class Invoice(models.Model):
    # No number is missing between two invoices: the insert takes it.
    id = GaplessIdField(primary_key=True)
    # As people write it: from 1 in each year.
    number = GaplessIdField(
        _("number"),
        per=["issued_on.year"],
        look="INV-{issued_on.year}-{number:04}",
        unique=True,
    )
    order = models.ForeignKey(
        Order, models.PROTECT, related_name="invoices", verbose_name=_("order")
    )
    issued_on = models.DateField(_("issued on"))
    total = models.DecimalField(
        _("total"), max_digits=14, decimal_places=2, validators=[_not_negative]
    )

    objects = HiLoManager()

    class Meta:
        verbose_name = _("invoice")
        verbose_name_plural = _("invoices")
        ordering = ("-issued_on", "-order__number")
        indexes = (models.Index("id__number", name="shop_invoices_by_number"),)

    def __str__(self) -> str:
        return str(self.number)

    def get_absolute_url(self) -> str:
        return reverse("shop:invoice", args=[self.pk])


class Announcement(models.Model):
    """A line of news on the front page; its key is an integer (DEFAULT_AUTO_FIELD)."""

    text = models.CharField(_("text"), max_length=200)
    published_on = models.DateField(_("published on"))

    objects = HiLoManager()

    class Meta:
        verbose_name = _("announcement")
        verbose_name_plural = _("announcements")
        ordering = ("-published_on", "-pk")

    def __str__(self) -> str:
        return self.text
