from django.apps import AppConfig


class NumbersConfig(AppConfig):
    name = "tests.numbers"
    default_auto_field = "django_hilo.fields.HiLoBigAutoField"
