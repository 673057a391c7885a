"""The admin of counters, server prefixes and gapless counters.

To show them in another theme, mix them with its ModelAdmin and register the result in
their place: ``class Mine(HiLoDocumentAdmin, unfold.admin.ModelAdmin)``.
"""

from django.contrib import admin

from django_hilo.admin.counters import HiLoDocumentAdmin
from django_hilo.admin.gapless import GaplessCounterAdmin
from django_hilo.admin.prefixes import ServerPrefixAdmin
from django_hilo.models import GaplessCounter, HiLoDocument, ServerPrefix

__all__ = ["GaplessCounterAdmin", "HiLoDocumentAdmin", "ServerPrefixAdmin"]

admin.site.register(HiLoDocument, HiLoDocumentAdmin)
admin.site.register(ServerPrefix, ServerPrefixAdmin)
admin.site.register(GaplessCounter, GaplessCounterAdmin)
