"""The tables: counters, server prefixes and gapless counters."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_hilo._late_rows import LateRows, write_late_rows
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_SERVER_PREFIX_LENGTH,
    check_counter_name,
    check_node_tag,
    check_server_prefix,
    counter_key,
    shown,
)

# Django's own error, a RuntimeError about an app_label, suggests another remedy.
if apps.get_containing_app_config(__name__) is None:
    raise ImproperlyConfigured(
        "The counters of ids need the app django_hilo: add 'django_hilo' to "
        "INSTALLED_APPS, and run migrate."
    )


def _validated(
    check: Callable[[str], str], value: str, rule: Any, most: int = 4
) -> None:
    # The grammar's own errors are for developers, and need no Django.
    try:
        check(value)
    except InvalidDocumentId as error:
        known = {"value": shown(value), "most": most}
        raise ValidationError(rule, code="invalid", params=known) from error


def validate_collection(value: str) -> None:
    """Raise ValidationError for what names neither a collection nor a series."""
    rule = _(
        "The collection %(value)s must start with a letter A-Z or a-z, contain only "
        "letters, digits, '_' and '-', and have at most %(most)s characters."
    )
    _validated(check_counter_name, value, rule, MAX_COLLECTION_LENGTH)


def validate_node_tag(value: str) -> None:
    """Raise ValidationError for a node tag outside the grammar."""
    rule = _("The node tag %(value)s must be 1 to 4 upper-case letters A-Z.")
    _validated(check_node_tag, value, rule)


def validate_server_prefix(value: str) -> None:
    """Raise ValidationError for a server prefix outside the grammar."""
    rule = _(
        "The server prefix %(value)s must not end in a digit (example: 'NorthServer/') "
        "or contain a space, '$' or '|', and may have at most %(most)s characters."
    )
    _validated(check_server_prefix, value, rule, MAX_SERVER_PREFIX_LENGTH)


class HiLoDocument(models.Model):
    """The counter of one collection on one node (RavenDB's ``Raven/Hilo/orders``)."""

    id = models.CharField(
        primary_key=True, max_length=MAX_COLLECTION_LENGTH + 5, editable=False
    )
    collection = models.CharField(
        _("collection"),
        max_length=MAX_COLLECTION_LENGTH,
        validators=[validate_collection],
        help_text=_("In lower case: collections are not case-sensitive."),
    )
    node_tag = models.CharField(
        _("node tag"),
        max_length=4,
        blank=True,
        default="",
        validators=[validate_node_tag],
    )
    max = models.BigIntegerField(
        _("Max"), default=0, help_text=_("The highest number reserved so far.")
    )
    floor = models.BigIntegerField(
        pgettext_lazy("a number", "floor"),
        default=0,
        help_text=_("Max never falls below this number, because an id with it exists."),
    )
    low = models.BigIntegerField(_("low of the newest range"), default=0)
    size = models.BigIntegerField(_("size of the newest range"), default=0)
    reserved_at = models.DateTimeField(_("reserved at"), null=True, blank=True)
    ticket = models.CharField(
        pgettext_lazy("the secret mark of a reservation", "ticket"),
        max_length=32,
        blank=True,
        default="",
        editable=False,
    )
    # The mark of the client of RavenDB's that made the counter.
    made_by = models.CharField(max_length=16, blank=True, default="", editable=False)

    # How many seconds it took to lock the row.
    waited = 0.0

    objects = LateRows["HiLoDocument"]()

    class Meta:
        verbose_name = _("counter")
        verbose_name_plural = _("counters")
        ordering = ["collection", "node_tag"]
        permissions = [("take_hilo_ids", _("Can take HiLo ids"))]

    def __str__(self) -> str:
        return self.id

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.collection = self.collection.lower()
        self.id = self.key(self.collection, self.node_tag)
        if kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], "ticket"}
        super().save(*args, **kwargs)

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        write_late_rows()  # Django's own does without our manager
        super().refresh_from_db(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        write_late_rows()
        return super().delete(*args, **kwargs)

    @property
    def next_low(self) -> int:
        """The first number of the next range: 2^63 if none is left."""
        return max(self.max, self.floor) + 1

    key = staticmethod(counter_key)


class ServerPrefix(models.Model):
    """The text before the number in the ids of a node (RavenDB 3's server prefix)."""

    node_tag = models.CharField(
        _("node tag"),
        primary_key=True,
        max_length=4,
        validators=[validate_node_tag],
    )
    prefix = models.CharField(
        _("server prefix"),
        max_length=MAX_SERVER_PREFIX_LENGTH,
        blank=True,
        default="",
        validators=[validate_server_prefix],
        help_text=_(
            "Empty, or a text that does not end in a digit: NorthServer/ makes ids "
            "such as orders/NorthServer/1-A. Applies from the next range on."
        ),
    )

    objects = LateRows["ServerPrefix"]()

    class Meta:
        verbose_name = _("server prefix")
        verbose_name_plural = _("server prefixes")
        ordering = ["node_tag"]

    def __str__(self) -> str:
        return f"{self.node_tag}: {self.prefix}"

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        write_late_rows()
        return super().delete(*args, **kwargs)


class GaplessCounter(models.Model):
    """The counter of a collection's gapless numbers (RavenDB's identities)."""

    collection = models.CharField(
        _("collection"),
        primary_key=True,
        max_length=MAX_COLLECTION_LENGTH,
        validators=[validate_collection],
        help_text=_("In lower case: collections are not case-sensitive."),
    )
    last = models.BigIntegerField(
        _("last number"), default=0, help_text=_("The next number is one higher.")
    )
    # As that of a HiLoDocument.
    made_by = models.CharField(max_length=16, blank=True, default="", editable=False)

    class Meta:
        verbose_name = _("gapless counter")
        verbose_name_plural = _("gapless counters")
        ordering = ["collection"]

    def __str__(self) -> str:
        return self.collection

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.collection = self.collection.lower()
        super().save(*args, **kwargs)
