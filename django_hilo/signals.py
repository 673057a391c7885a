from __future__ import annotations

from django.dispatch import Signal

# Sent after a range was reserved, with using and reservation (a Reservation). Receivers
# run while the caller of save() waits; they may take ids themselves. Their errors are
# logged by Django and stop nobody from saving.
range_reserved = Signal()

# Sent after the unused end of a range went back, with using, collection, node_tag and
# last (what Max is now).
range_returned = Signal()

# Sent after a user changed something over the admin or REST, with user, using, change
# (a `steering.Change`), old and new (None: there was, or is, no row). The sender tells
# what: HiLoDocument (also collection, node_tag; Max), ServerPrefix (also node_tag; the
# prefix) or GaplessCounter (also collection; the last number). A transaction around the
# request may still be open.
counter_changed = Signal()
