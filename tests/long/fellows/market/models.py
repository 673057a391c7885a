"""Models with HiLo keys, each as the users of one package declare theirs."""

import reversion
from django.db import models
from guardian.models import UserObjectPermissionBase
from modelcluster.fields import ParentalKey
from mptt.managers import TreeManager
from mptt.models import MPTTModel, TreeForeignKey
from mptt.querysets import TreeQuerySet
from parler.fields import TranslationsForeignKey
from parler.managers import TranslatableManager, TranslatableQuerySet
from parler.models import TranslatableModel, TranslatedFields, TranslatedFieldsModel
from simple_history.models import HistoricalRecords
from taggit.managers import TaggableManager
from taggit.models import CommonGenericTaggedItemBase, ItemBase, Tag, TaggedItemBase
from treebeard.al_tree import AL_Node
from treebeard.mp_tree import MP_Node, MP_NodeManager, MP_NodeQuerySet
from treebeard.ns_tree import NS_Node
from wagtail.admin.panels import FieldPanel, InlinePanel
from wagtail.models import DraftStateMixin, Orderable, Page, RevisionMixin
from wagtail.snippets.models import register_snippet

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager, HiLoQuerySet


class Order(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = HiLoManager()

    def __str__(self) -> str:
        return self.name


class Invoice(models.Model):
    id = HiLoField(primary_key=True, anchor="order")
    order = models.ForeignKey(Order, models.CASCADE, related_name="invoices")
    total = models.IntegerField(default=0)

    objects = HiLoManager()


class Ticket(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = HiLoManager()


# django-guardian: permissions in a table of their own, by a foreign key


class Parcel(models.Model):
    id = HiLoField(primary_key=True)

    objects = HiLoManager()


class ParcelPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(Parcel, models.CASCADE)


# django-simple-history


class Contract(models.Model):
    id = HiLoField(collection="contracts", primary_key=True)
    name = models.CharField(max_length=50)

    objects = HiLoManager()
    history = HistoricalRecords()


class Clause(models.Model):
    id = HiLoField(primary_key=True, anchor="contract")
    contract = models.ForeignKey(Contract, models.CASCADE)
    text = models.CharField(max_length=50)

    objects = HiLoManager()
    history = HistoricalRecords(history_id_field=HiLoBigAutoField())


class Meter(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    value = models.IntegerField(default=0)

    objects = HiLoManager()
    history = HistoricalRecords()


# django-reversion; registered as its VersionAdmin would, for who has no admin


@reversion.register(follow=["enclosures"])
class Letter(models.Model):
    id = HiLoField(primary_key=True)
    text = models.CharField(max_length=50)

    objects = HiLoManager()


@reversion.register
class Enclosure(models.Model):
    id = HiLoField(primary_key=True, anchor="letter")
    letter = models.ForeignKey(Letter, models.CASCADE, related_name="enclosures")
    text = models.CharField(max_length=50)

    objects = HiLoManager()


# django-taggit


class TaggedById(CommonGenericTaggedItemBase, TaggedItemBase):
    """Taggit's own TaggedItem has an integer for an id."""

    object_id = models.CharField(max_length=128, db_index=True)


class Photo(models.Model):
    id = HiLoField(primary_key=True)
    tags = TaggableManager(through=TaggedById)

    objects = HiLoManager()


class PhotoOfInvoice(models.Model):
    id = HiLoField(collection="InvoicePhotos", primary_key=True, anchor="invoice")
    invoice = models.ForeignKey(Invoice, models.CASCADE)
    tags = TaggableManager(through=TaggedById)

    objects = HiLoManager()


class TaggedMap(ItemBase):
    """A foreign key in place of a generic relation."""

    tag = models.ForeignKey(Tag, models.CASCADE, related_name="tagged_maps")
    content_object = models.ForeignKey("Map", models.CASCADE)


class Map(models.Model):
    id = HiLoField(primary_key=True)
    tags = TaggableManager(through=TaggedMap)

    objects = HiLoManager()


class Stamp(models.Model):
    id = HiLoBigAutoField(primary_key=True)
    tags = TaggableManager()

    objects = HiLoManager()


# django-treebeard and django-mptt


class ShelfQuerySet(HiLoQuerySet, MP_NodeQuerySet):
    pass


class ShelfManager(MP_NodeManager.from_queryset(HiLoQuerySet)):
    def get_queryset(self):
        return ShelfQuerySet(self.model, using=self._db).order_by("path")


class Shelf(MP_Node):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)

    objects = ShelfManager()
    node_order_by = ["name"]


class Region(NS_Node):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)

    node_order_by = ["name"]


class Staff(AL_Node):
    id = HiLoField(collection="staff", primary_key=True)
    parent = models.ForeignKey(
        "self", models.CASCADE, related_name="children_set", null=True, db_index=True
    )
    name = models.CharField(max_length=50)

    node_order_by = ["name"]


class GenreQuerySet(HiLoQuerySet, TreeQuerySet):
    pass


class Genre(MPTTModel):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50)
    parent = TreeForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="children"
    )

    objects = TreeManager.from_queryset(GenreQuerySet)()

    class MPTTMeta:
        order_insertion_by = ["name"]


# django-parler


class DishQuerySet(HiLoQuerySet, TranslatableQuerySet):
    pass


class Dish(TranslatableModel):
    id = HiLoField(primary_key=True)

    objects = TranslatableManager.from_queryset(DishQuerySet)()


class DishText(TranslatedFieldsModel):
    id = HiLoField(collection="DishTexts", primary_key=True, anchor="master")
    master = TranslationsForeignKey(Dish, models.CASCADE, related_name="translations")
    name = models.CharField(max_length=50)


class Wine(TranslatableModel):
    id = HiLoBigAutoField(primary_key=True)
    translations = TranslatedFields(name=models.CharField(max_length=50))


# Wagtail


@register_snippet
class Advert(DraftStateMixin, RevisionMixin, models.Model):
    id = HiLoField(primary_key=True)
    text = models.CharField(max_length=50)

    objects = HiLoManager()
    panels = [FieldPanel("text")]

    def __str__(self) -> str:
        return self.text


class AdvertPage(Page):
    advert = models.ForeignKey(
        Advert, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    content_panels = [*Page.content_panels, FieldPanel("advert"), InlinePanel("links")]


class Link(Orderable):
    id = HiLoField(primary_key=True)
    page = ParentalKey(AdvertPage, on_delete=models.CASCADE, related_name="links")
    text = models.CharField(max_length=50)

    panels = [FieldPanel("text")]
