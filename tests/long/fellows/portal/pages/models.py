"""What pages of django-cms show, and what extends them."""

from cms.extensions import PageExtension
from cms.extensions.extension_pool import extension_pool
from cms.models import CMSPlugin
from cms.models.fields import PlaceholderRelationField
from django.db import models

from tests.long.fellows.portal.people.models import HiLoKey


class Offer(models.Model):
    id = HiLoKey(primary_key=True)
    text = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.text


class OfferPlugin(CMSPlugin):
    offer = models.ForeignKey(Offer, models.CASCADE)


@extension_pool.register
class Price(PageExtension):
    id = HiLoKey(primary_key=True)
    amount = models.IntegerField(default=0)


class Story(models.Model):
    id = HiLoKey(primary_key=True)
    placeholders = PlaceholderRelationField()
