"""The admin of counters and server prefixes.

To show them in another theme, mix them with its ModelAdmin and register the result in
their place: ``class Mine(HiLoDocumentAdmin, unfold.admin.ModelAdmin)``.
"""

from __future__ import annotations

from django.contrib import admin

from django_hilo.admin.counters import HiLoDocumentAdmin
from django_hilo.admin.prefixes import ServerPrefixAdmin
from django_hilo.models import HiLoDocument, ServerPrefix

__all__ = ["HiLoDocumentAdmin", "ServerPrefixAdmin"]

admin.site.register(HiLoDocument, HiLoDocumentAdmin)
admin.site.register(ServerPrefix, ServerPrefixAdmin)
