"""The same admin pages in Unfold, by mixing its ModelAdmin in."""

from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from django_hilo.admin import HiLoDocumentAdmin, ServerPrefixAdmin
from django_hilo.models import HiLoDocument, ServerPrefix

unfold_site = UnfoldAdminSite(name="unfold")


class UnfoldHiLoDocumentAdmin(HiLoDocumentAdmin, ModelAdmin):
    pass


class UnfoldServerPrefixAdmin(ServerPrefixAdmin, ModelAdmin):
    pass


unfold_site.register(HiLoDocument, UnfoldHiLoDocumentAdmin)
unfold_site.register(ServerPrefix, UnfoldServerPrefixAdmin)
