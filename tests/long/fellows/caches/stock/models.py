from django.db import models

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager


class Article(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = HiLoManager()


class Box(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = HiLoManager()
