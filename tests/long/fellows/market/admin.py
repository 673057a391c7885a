from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.urls import path
from guardian.admin import GuardedModelAdmin
from import_export.admin import ImportExportModelAdmin
from mptt.admin import DraggableMPTTAdmin
from parler.admin import TranslatableAdmin
from reversion.admin import VersionAdmin
from simple_history.admin import SimpleHistoryAdmin
from treebeard.admin import TreeAdmin
from treebeard.forms import movenodeform_factory

from tests.long.fellows.market import models


class EnclosureInline(admin.TabularInline):
    model = models.Enclosure
    extra = 0


@admin.register(models.Order)
class OrderAdmin(ImportExportModelAdmin):
    search_fields = ["id", "name"]


@admin.register(models.Letter)
class LetterAdmin(VersionAdmin):
    inlines = [EnclosureInline]


@admin.register(models.Contract, models.Clause)
class HistoryAdmin(SimpleHistoryAdmin):
    def get_urls(self):
        # The links of the list of changes name the id as it is.
        change = path(
            "<hilo:object_id>/history/<int:version_id>/",
            self.admin_site.admin_view(self.history_form_view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_simple_history",
        )
        return [change, *super().get_urls()]


@admin.register(models.Invoice)
class InvoiceAdmin(GuardedModelAdmin):
    def get_urls(self):
        # Two pages lead to themselves by the id as it is, and do not unquote it.
        model = f"{self.opts.app_label}_{self.opts.model_name}"
        pages = [
            path(
                f"<hilo:object_pk>/permissions/{kind}-manage/<int:{kind}_id>/",
                self.admin_site.admin_view(view),
                name=f"{model}_permissions_manage_{kind}",
            )
            for kind, view in [
                ("user", self.obj_perms_manage_user_view),
                ("group", self.obj_perms_manage_group_view),
            ]
        ]
        return [*pages, *super().get_urls()]

    def obj_perms_manage_user_view(self, request, object_pk, user_id):
        return super().obj_perms_manage_user_view(request, unquote(object_pk), user_id)

    def obj_perms_manage_group_view(self, request, object_pk, group_id):
        return super().obj_perms_manage_group_view(
            request, unquote(object_pk), group_id
        )


@admin.register(models.Photo)
class PhotoAdmin(admin.ModelAdmin):
    list_filter = ["tags"]


@admin.register(models.Shelf)
class ShelfAdmin(TreeAdmin):
    form = movenodeform_factory(models.Shelf)


@admin.register(models.Region)
class RegionAdmin(TreeAdmin):
    form = movenodeform_factory(models.Region)


@admin.register(models.Staff)
class StaffAdmin(TreeAdmin):
    form = movenodeform_factory(models.Staff)


@admin.register(models.Genre)
class GenreAdmin(DraggableMPTTAdmin):
    pass


@admin.register(models.Dish, models.Wine)
class TranslatedAdmin(TranslatableAdmin):
    list_display = ["id", "name"]
