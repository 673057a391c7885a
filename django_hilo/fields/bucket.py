from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.db import models

from django_hilo.fields.base import IdField
from django_hilo.fields.checks import check_bucket_field
from django_hilo.freshness import is_watched

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

    _IntegerField = models.PositiveIntegerField[int | Combinable | None, int]
else:
    _IntegerField = models.PositiveIntegerField


class BucketField(_IntegerField):
    """The bucket of an id as a column, 0 to 1,048,575, for what distributes by one.

    ``source`` names the field of the id, or a relation to its object. Every save and
    ``bulk_create()`` sets the bucket; ``QuerySet.update()`` of the source does not.
    Needs the package xxhash (extra ``sharding``).
    """

    non_db_attrs = (*models.PositiveIntegerField.non_db_attrs, "source")

    def __init__(self, source: str = "id", **kwargs: Any) -> None:
        self.source = source
        kwargs.setdefault("editable", False)
        super().__init__(**kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("editable", None)
        if self.editable:
            kwargs["editable"] = True
        if self.source != "id":
            kwargs["source"] = self.source
        path = path.replace("django_hilo.fields.bucket.", "django_hilo.fields.")
        return name, path, args, kwargs

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        return [*super().check(**kwargs), *check_bucket_field(self)]

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        # The rest of the package does without xxhash.
        from django_hilo.sharding.buckets import bucket_of

        source: Any = self.model._meta.get_field(self.source)
        if add and isinstance(source, IdField) and not is_watched(model_instance):
            source.pre_save(model_instance, add)  # its turn may come later
        value = getattr(model_instance, source.attname)
        bucket = None if value is None else bucket_of(str(value))
        setattr(model_instance, self.attname, bucket)
        return bucket
