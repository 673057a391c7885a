from allauth.account.views import password_reset_from_key
from django.contrib import admin
from django.urls import include, path, re_path
from oauth2_provider import views
from oauth2_provider.urls import app_name
from oauth2_provider.urls import urlpatterns as theirs

applications = [
    path("<hilo:pk>/", views.ApplicationDetail.as_view(), name="detail"),
    path("<hilo:pk>/delete/", views.ApplicationDelete.as_view(), name="delete"),
    path("<hilo:pk>/update/", views.ApplicationUpdate.as_view(), name="update"),
]
oauth = [path("applications/", include(applications)), *theirs]

urlpatterns = [
    path("admin/", admin.site.urls),
    re_path(
        r"^accounts/password/reset/key/(?P<uidb36>\w+/\d+-[A-Z]+)-(?P<key>.+)/$",
        password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("accounts/", include("allauth.urls")),
    path("o/", include((oauth, app_name))),
    path("", include("cms.urls")),
]
