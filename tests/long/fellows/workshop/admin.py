from auditlog.mixins import AuditlogHistoryAdminMixin
from django.contrib import admin
from django.contrib.admin.utils import unquote
from polymorphic.admin import (
    PolymorphicChildModelAdmin,
    PolymorphicChildModelFilter,
    PolymorphicParentModelAdmin,
)

from tests.long.fellows.workshop import models


@admin.register(models.Machine, models.Tool)
class AuditedAdmin(AuditlogHistoryAdminMixin, admin.ModelAdmin):
    show_auditlog_history_link = True


@admin.register(models.Vehicle)
class VehicleAdmin(PolymorphicParentModelAdmin):
    base_model = models.Vehicle
    child_models = [models.Car, models.Truck]
    list_filter = [PolymorphicChildModelFilter]

    def _get_real_admin(self, object_id, super_if_self=True):
        return super()._get_real_admin(unquote(object_id), super_if_self)


@admin.register(models.Device)
class DeviceAdmin(PolymorphicParentModelAdmin):
    base_model = models.Device
    child_models = [models.Phone, models.Screen]
    list_filter = [PolymorphicChildModelFilter]


@admin.register(models.Car, models.Truck)
class SomeVehicleAdmin(PolymorphicChildModelAdmin):
    base_model = models.Vehicle


@admin.register(models.Phone, models.Screen)
class SomeDeviceAdmin(PolymorphicChildModelAdmin):
    base_model = models.Device
