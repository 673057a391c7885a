from __future__ import annotations

from typing import cast

from rest_framework.settings import api_settings
from rest_framework.throttling import UserRateThrottle


class HiLoThrottle(UserRateThrottle):
    """Limit each user to the rate "hilo" of ``DEFAULT_THROTTLE_RATES``; none: no limit.

    It holds for the endpoints together.
    """

    scope = "hilo"

    def get_rate(self) -> str | None:
        """Return the rate as the settings have it now."""
        rates = api_settings.DEFAULT_THROTTLE_RATES
        return cast("str | None", rates.get(self.scope))
