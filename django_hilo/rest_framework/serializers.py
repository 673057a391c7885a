"""The bodies of requests and answers. A counter's ticket is never shown."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from django_hilo.identifiers import MAX_WIDTH
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.rest_framework.fields import CountField, NumberField, ServerPrefixField


class DocumentSerializer(serializers.ModelSerializer[HiLoDocument]):
    """A counter."""

    class Meta:
        model = HiLoDocument
        fields = [
            "collection",
            "node_tag",
            "max",
            "floor",
            "low",
            "size",
            "reserved_at",
        ]
        read_only_fields = fields


class RaiseMaxSerializer(serializers.Serializer[Any]):
    """The new Max of a counter."""

    max = NumberField(help_text=_("The highest number reserved so far; only rises."))


class NextIdsSerializer(serializers.Serializer[Any]):
    """How many ids to give."""

    count = CountField(required=False, default=1, initial=1, help_text=_("How many."))


class NumberedIdsSerializer(serializers.Serializer[Any]):
    """Ids, and their numbers in the same order."""

    collection = serializers.CharField()
    numbers = serializers.ListField(child=serializers.IntegerField(min_value=1))
    ids = serializers.ListField(child=serializers.CharField())


class RangeSizeSerializer(serializers.Serializer[Any]):
    """How many numbers to reserve."""

    size = CountField(help_text=_("How many numbers, one after the other."))


class RangeSerializer(serializers.Serializer[Any]):
    """A reserved range, and all that ids of it are made of."""

    collection = serializers.CharField()
    separator = serializers.CharField()
    server_prefix = serializers.CharField(allow_blank=True)
    low = serializers.IntegerField(min_value=1)
    high = serializers.IntegerField(min_value=1)
    node_tag = serializers.CharField(
        allow_blank=True, help_text=_("As the ids show it; empty: they show none.")
    )
    width = serializers.IntegerField(
        min_value=0,
        max_value=MAX_WIDTH,
        help_text=_("Digits of a number, with leading zeros; 0: as many as it has."),
    )
    ticket = serializers.CharField(
        help_text=_("A secret, to be shown when the unused end is returned.")
    )


class RangeReturnSerializer(serializers.Serializer[Any]):
    """The unused end of a range."""

    high = NumberField(least=1, help_text=_("As it was given."))
    last = NumberField(help_text=_("The highest number used; low - 1 for none."))
    ticket = serializers.RegexField(
        r"^[0-9A-Za-z-]{1,32}\Z", max_length=32, help_text=_("As it was given.")
    )


class ReturnedSerializer(serializers.Serializer[Any]):
    """The new Max of the counter."""

    returned = serializers.BooleanField()
    max = serializers.IntegerField(min_value=0)


class PrefixSerializer(serializers.ModelSerializer[ServerPrefix]):
    """A server prefix."""

    class Meta:
        model = ServerPrefix
        fields = ["node_tag", "prefix"]
        read_only_fields = fields


class SetPrefixSerializer(serializers.Serializer[Any]):
    """The new server prefix of a node."""

    prefix = ServerPrefixField(
        help_text=_(
            "Empty, or ends in a character that is no digit: NorthServer/ gives "
            "orders/NorthServer/1. Holds from each process's next range on."
        )
    )


class GaplessNumberSerializer(serializers.Serializer[Any]):
    """A gapless number, and its id."""

    number = serializers.IntegerField(min_value=1)
    id = serializers.CharField()
