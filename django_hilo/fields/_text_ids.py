"""The base of fields with text ids."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from django.core.exceptions import ValidationError
from django.db import connections, models
from django.db.models.expressions import Combinable
from django.utils.translation import gettext as _

from django_hilo._allocation.registry import Series
from django_hilo._database.dialects import dialect_of
from django_hilo.fields._ids import Ids
from django_hilo.fields._series import SeriesRule
from django_hilo.fields.saving import GivesIds
from django_hilo.identifiers import DocumentId, parse_alike, parse_or_none, shown

Text = str | Combinable | None

if TYPE_CHECKING:
    # A translated text; only the stubs of Django have its type.
    from django.utils.functional import _StrPromise
    from typing_extensions import TypeVar

    VerboseName = str | _StrPromise | None

    # The type of a value that is set (None for an object without an id), and of one
    # that is read. The plugin of django-stubs replaces Any, by "str | None" if the
    # field is nullable; other type checkers read a str.
    Set_contra = TypeVar("Set_contra", contravariant=True, default=Text)
    Got_co = TypeVar("Got_co", covariant=True, default=Any)

    class _CharField(models.CharField[Set_contra, Got_co]):
        @overload  # type: ignore[override, no-overload-impl]  # as in a stub
        def __get__(self, instance: None, owner: Any) -> Any: ...
        @overload
        def __get__(self: "_CharField[Any, str]", instance: Any, owner: Any) -> str: ...
        @overload
        def __get__(self, instance: Any, owner: Any) -> Got_co: ...

else:
    Set_contra = Got_co = None
    VerboseName = Any

    class _CharField(models.CharField):
        def __class_getitem__(cls, types: Any) -> type:
            return cls  # types mean nothing at run time


class IdField(GivesIds, _CharField[Set_contra, Got_co]):
    """A text id; subclasses define where its numbers come from."""

    # An object without an id must start as None: Django takes "" for a saved key.
    empty_strings_allowed = False
    own_options = dict(editable=False, blank=True, collection=None, any_id=False)  # noqa: C408 - a literal takes six lines
    own_options.update(per=(), look=None)
    non_db_attrs = (*models.CharField.non_db_attrs, *own_options)
    # What it knows of its ids if each tenant, or year ..., has a series.
    kind_in_series: type[Ids]
    _has_warned = False

    def __init__(
        self,
        verbose_name: VerboseName = None,
        *,
        any_id: bool = False,
        per: Sequence[str] = (),
        look: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.any_id, self.look = any_id, look
        self.per = tuple(per) if isinstance(per, list) else per
        if per:
            self.kind = self.kind_in_series
        kwargs.setdefault("editable", False)
        kwargs.setdefault("blank", True)
        super().__init__(verbose_name, **kwargs)

    def takes(self, value: Any) -> bool:
        """Whether a value is an id of the field's collection, or may be any text."""
        if self.any_id or self.is_copy:
            return True
        if self.per:
            return self._rule.accepts(value)
        id = parse_or_none(value)
        return id is not None and id.collection.lower() == self.collection_name.lower()

    def series_of(self, instance: models.Model) -> Series:
        """Return the series of an instance; `HiLoError` for a value that is missing."""
        return self._rule.of(instance)

    @property
    def _rule(self) -> SeriesRule:
        ids: Any = self.ids
        rule: SeriesRule = ids.rule
        return rule

    def parsed(self, value: Any, using: str) -> DocumentId | None:
        """Return the parts of an id that a database takes for equal to a value."""
        loosely = dialect_of(connections[using]).compares_loosely
        return parse_alike(value) if loosely else parse_or_none(value)

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        is_new = model_instance is None or model_instance._state.adding
        if is_new and value not in self.empty_values and not self.takes(value):
            raise ValidationError(
                _(
                    "“%(id)s” is not an id of “%(own)s”. Omit the id, or set "
                    "any_id=True on the field."
                ),
                code="any_id",
                params={"id": value, "own": self.collection_name},
            )

    def warn_of(self, value: Any) -> None:
        """Warn, once a process, of an explicit id that is not one of the collection."""
        is_given = isinstance(value, str | int)
        if is_given and not (self._has_warned or self.takes(value)):
            warnings.warn(
                f"{self} received {shown(value)}, which is not an id of "
                f"{self.collection_name!r}. Omit the id, or set any_id=True on the "
                f"field.",
                RuntimeWarning,
                stacklevel=2,
            )
            self._has_warned = True

    def db_type(self, connection: Any) -> str | None:
        own = self.max_length and dialect_of(connection).id_type(self.max_length)
        return own or super().db_type(connection)

    def get_prep_value(self, value: Any) -> Any:
        # Most values are ids, which are texts already.
        return value if type(value) is str else super().get_prep_value(value)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"empty_value": None, **kwargs})
