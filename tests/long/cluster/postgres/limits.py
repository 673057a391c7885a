"""How long things may take in the Django processes, in seconds."""

from __future__ import annotations

LOCK_TIMEOUT = 2.0
RETRY_FOR = 5.0
