from django.urls import path

from tests.long.browser.with_unfold.sites import unfold_site

urlpatterns = [path("admin/", unfold_site.urls)]
