from cms.plugin_base import CMSPluginBase
from cms.plugin_pool import plugin_pool

from tests.long.fellows.portal.pages.models import OfferPlugin


@plugin_pool.register_plugin
class ShowOffer(CMSPluginBase):
    model = OfferPlugin
    render_template = "pages/offer.html"
