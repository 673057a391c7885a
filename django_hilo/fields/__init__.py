"""The fields, under the paths that migrations name."""

from django_hilo.fields.bucket import BucketField
from django_hilo.fields.gapless import GaplessIdField
from django_hilo.fields.hilo import HiLoField
from django_hilo.fields.integer import HiLoBigAutoField

__all__ = ["BucketField", "GaplessIdField", "HiLoBigAutoField", "HiLoField"]
