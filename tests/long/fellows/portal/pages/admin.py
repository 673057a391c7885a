from cms.extensions import PageExtensionAdmin
from django.contrib import admin

from tests.long.fellows.portal.pages.models import Offer, Price

admin.site.register(Offer)
admin.site.register(Price, PageExtensionAdmin)
