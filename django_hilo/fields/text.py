"""The base of fields with text ids."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.expressions import Combinable

from django_hilo._database.dialects import dialect_of
from django_hilo.fields.base import AssignsIds

Text = str | Combinable | None

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The type of a value that is set (None for an object without an id), and of one
    # that is read.
    Set_contra = TypeVar("Set_contra", contravariant=True, default=Any)
    Got_co = TypeVar("Got_co", covariant=True, default=Any)

    class _CharField(models.CharField[Set_contra, Got_co]): ...

else:
    Set_contra = Got_co = None

    class _CharField(models.CharField):
        def __class_getitem__(cls, types: Any) -> type:
            return cls  # types mean nothing at run time


class IdField(AssignsIds, _CharField[Set_contra, Got_co]):
    """A text id; subclasses define where its numbers come from."""

    # An object without an id must start as None: Django takes "" for a saved key.
    empty_strings_allowed = False
    own_options = {"editable": False, "blank": True, "collection": None}
    non_db_attrs = (*models.CharField.non_db_attrs, "collection")

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("editable", False)
        kwargs.setdefault("blank", True)
        super().__init__(**kwargs)

    def db_type(self, connection: Any) -> str | None:
        own = self.max_length and dialect_of(connection).id_type(self.max_length)
        return own or super().db_type(connection)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"empty_value": None, **kwargs})
