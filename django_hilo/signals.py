from __future__ import annotations

from django.dispatch import Signal

# Sent after a range was reserved, with using and reservation (a Reservation). Receivers
# run while the caller of save() waits; they may take ids themselves. Their errors are
# logged by Django and stop nobody from saving.
range_reserved = Signal()

# Sent after the unused end of a range went back, with using, collection, node_tag and
# last (what Max is now).
range_returned = Signal()
