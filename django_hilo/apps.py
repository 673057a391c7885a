"""The configuration of the app: checks, converters, lookups and process hooks."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DjangoHiloConfig(AppConfig):
    """The app ``django_hilo``; `ready` uses no database."""

    name = "django_hilo"
    verbose_name = _("HiLo ids")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_hilo import checks, converters
        from django_hilo._operations import process_hooks
        from django_hilo.fields import lookups

        checks.register()
        converters.register()
        lookups.register()
        process_hooks.arm(self)
