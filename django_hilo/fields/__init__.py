"""The fields, under the import paths that migrations contain."""

from django_hilo.fields.bucket import BucketField
from django_hilo.fields.gapless import GaplessIdField
from django_hilo.fields.hilo import HiLoField
from django_hilo.fields.integer import HiLoBigAutoField

__all__ = ["BucketField", "GaplessIdField", "HiLoBigAutoField", "HiLoField"]
