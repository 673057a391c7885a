"""Buckets: RavenDB's 1,048,576 places among which the ids of documents are spread.

An id that is anchored has the bucket of its anchor, so documents that belong together
stay together wherever buckets are distributed.
"""

from __future__ import annotations

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.sharding.bucket_count import BUCKETS

try:
    from xxhash import xxh64_intdigest
except ImportError as error:
    raise ImportError(
        'Buckets need the package xxhash: pip install "django-hilo[sharding]".'
    ) from error


def bucket_of(id: str) -> int:
    """Return the bucket of an id or any other text, from 0 to 1,048,575.

    RavenDB's rule, bit for bit: XXH64 of what follows the last ``$`` (one at the very
    start does not count), in lower case, as UTF-8, modulo 1,048,576. Raises
    `InvalidDocumentId` for what is no text.
    """
    if not isinstance(id, str):
        raise InvalidDocumentId(
            f"{id!r} has no bucket: a str is needed, not {type(id).__name__}."
        )
    try:
        hashed = _lower(deciding_part(id)).encode()
    except UnicodeEncodeError as error:
        raise InvalidDocumentId(
            f"{id!r} has no bucket: it holds half a character (a lone surrogate)."
        ) from error
    return xxh64_intdigest(hashed) % BUCKETS


def deciding_part(id: str) -> str:
    """Return the part of an id that its bucket is of: the last anchor, or all."""
    dollar = id.rfind("$")
    return id[dollar + 1 :] if dollar > 0 else id


def _lower(text: str) -> str:
    # Each character for itself: of words, str.lower() writes the last sigma otherwise.
    return text.lower() if text.isascii() else "".join(map(str.lower, text))
