"""How long things may take, in seconds."""

from __future__ import annotations

LOCK_TIMEOUT = 6.0
RETRY_FOR = 5.0
CONNECT_TIMEOUT = 2
# Over LOCK_TIMEOUT: an error of the server says more than a lost answer.
READ_TIMEOUT = 8

# The nodes are set to some 5 s (see node.py); a busy machine takes longer, and may let
# the caller wait as well.
EVICTION = 30.0
# What a call for an id may last on a node that nothing happened to ...
LONGEST_ELSEWHERE = LOCK_TIMEOUT + EVICTION
# ... and anywhere: the last try may begin when RETRY_FOR is nearly over.
LONGEST = RETRY_FOR + LOCK_TIMEOUT + CONNECT_TIMEOUT + READ_TIMEOUT + EVICTION
