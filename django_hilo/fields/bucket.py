"""The bucket of an id as a column: `BucketField`."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.expressions import Combinable
from django.db.models.query_utils import DeferredAttribute

from django_hilo.fields._options import Deconstructed, with_options
from django_hilo.fields._text_ids import IdField
from django_hilo.fields.saving import wrap_saves
from django_hilo.sharding import BUCKETS, bucket_of

if TYPE_CHECKING:
    _IntegerField = models.PositiveIntegerField[int | Combinable | None, int]
else:
    _IntegerField = models.PositiveIntegerField


class _FromSource(DeferredAttribute):
    """Compute the bucket from the source as it is now."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        field: Any = self.field
        return field.bucket(instance)

    def __set__(self, instance: models.Model, value: Any) -> None:
        # The value is not used; without one the field would count as deferred.
        instance.__dict__[self.field.attname] = value


class BucketField(_IntegerField):
    """The bucket of an id as a column, 0 to 1,048,575, to distribute rows by.

    ``source`` names the field of the id, or a relation to its object. The attribute
    is computed from it. Each save that writes the source writes the bucket too, and so
    do the bulk methods of a HiLoManager; ``QuerySet.update()`` does not. The field
    needs the package xxhash (extra ``sharding``).
    """

    own_options = {"editable": False, "source": "id"}
    non_db_attrs = (*models.PositiveIntegerField.non_db_attrs, "source")
    descriptor_class = _FromSource

    def __init__(self, source: str = "id", **kwargs: Any) -> None:
        self.source = source
        kwargs.setdefault("editable", False)
        super().__init__(**kwargs)

    def contribute_to_class(self, cls: Any, *args: Any, **kwargs: Any) -> None:
        super().contribute_to_class(cls, *args, **kwargs)
        wrap_saves(cls)

    def deconstruct(self) -> Deconstructed:
        return with_options(self, super().deconstruct())

    def db_check(self, connection: Any) -> str:
        column = connection.ops.quote_name(self.column)
        return f"{column} BETWEEN 0 AND {BUCKETS - 1}"

    @property
    def source_field(self) -> Any:
        return self.model._meta.get_field(self.source)

    def bucket(self, instance: models.Model) -> int | None:
        """Return the bucket of an instance's source, or None if it is unknown."""
        value = getattr(instance, self.source_field.attname)
        is_unknown = value is None or hasattr(value, "resolve_expression")
        return None if is_unknown else bucket_of(str(value))

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        source = self.source_field
        if add and isinstance(source, IdField):
            source.pre_save(model_instance, add)  # it may come after this field
        return super().pre_save(model_instance, add)
