"""The bodies of requests and answers. A counter's ticket is never shown."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from django_hilo.identifiers import MAX_WIDTH
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.rest_framework.fields import CountField, NumberField, ServerPrefixField


class RequestSerializer(serializers.Serializer[Any]):
    """What a request sends; other keys are refused (`bodies.check_keys`)."""


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


class RaiseMaxSerializer(RequestSerializer):
    """The new Max of a counter."""

    # DRF makes bodies of PATCH partial, and drf-spectacular their fields optional.
    partial = property(lambda self: False, lambda self, given: None)
    max = NumberField(help_text=_("The highest number reserved so far."))


class NextIdsSerializer(RequestSerializer):
    """How many ids to give."""

    count = CountField(required=False, default=1, initial=1, help_text=_("How many."))


class NumberedIdsSerializer(serializers.Serializer[Any]):
    """Ids, and their numbers in the same order."""

    collection = serializers.CharField()
    numbers = serializers.ListField(child=serializers.IntegerField(min_value=1))
    ids = serializers.ListField(child=serializers.CharField())


class RangeSizeSerializer(RequestSerializer):
    """How many numbers to reserve."""

    size = CountField(help_text=_("How many consecutive numbers to reserve."))


class RangeSerializer(serializers.Serializer[Any]):
    """A reserved range, and all that ids of it are made of."""

    collection = serializers.CharField()
    separator = serializers.CharField()
    server_prefix = serializers.CharField(allow_blank=True)
    low = serializers.IntegerField(min_value=1)
    high = serializers.IntegerField(min_value=1)
    node_tag = serializers.CharField(
        allow_blank=True, help_text=_("As shown in ids; empty if ids do not show it.")
    )
    width = serializers.IntegerField(
        min_value=0,
        max_value=MAX_WIDTH,
        help_text=_("Number of digits, with leading zeros; 0 for no padding."),
    )
    ticket = serializers.CharField(
        help_text=_("A secret that must be sent to return the unused end.")
    )


class RangeReturnSerializer(RequestSerializer):
    """The unused end of a range."""

    high = NumberField(least=1, help_text=_("As received."))
    last = NumberField(help_text=_("The highest number used; if none, low - 1."))
    ticket = serializers.RegexField(
        r"^[0-9A-Za-z-]{1,32}\Z", max_length=32, help_text=_("As received.")
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


class SetPrefixSerializer(RequestSerializer):
    """The new server prefix of a node."""

    prefix = ServerPrefixField(
        help_text=_(
            "Empty, or a text that does not end in a digit: NorthServer/ makes ids "
            "such as orders/NorthServer/1-A. Applies from each process's next range on."
        )
    )


class NothingSerializer(RequestSerializer):
    """A body without any field: {} will do."""


class GaplessNumberSerializer(serializers.Serializer[Any]):
    """A gapless number, and its id."""

    number = serializers.IntegerField(min_value=1)
    id = serializers.CharField()
