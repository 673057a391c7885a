"""Users and their programs, with text keys or with integer keys."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from oauth2_provider.models import AbstractApplication

from django_hilo.fields import HiLoBigAutoField, HiLoField

HiLoKey = {"text": HiLoField, "integer": HiLoBigAutoField}[settings.HILO_TEST_KEYS]


class Member(AbstractUser):
    id = HiLoKey(primary_key=True)


class Client(AbstractApplication):
    id = HiLoKey(primary_key=True)
