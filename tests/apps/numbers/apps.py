from django.apps import AppConfig


class NumbersConfig(AppConfig):
    name = "tests.apps.numbers"
    default_auto_field = "django_hilo.fields.HiLoBigAutoField"
