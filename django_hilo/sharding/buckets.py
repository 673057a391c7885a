"""Buckets: RavenDB's 1,048,576 places among which the ids of documents are spread.

An id that is anchored has the bucket of its anchor, so documents that belong together
stay together wherever buckets are distributed.
"""

from django_hilo.exceptions import InvalidDocumentId

BUCKETS = 1024 * 1024


def bucket_of(id: str) -> int:
    """Return the bucket of an id or any other text, from 0 to 1,048,575.

    The same as RavenDB's: XXH64 of the text after the last ``$`` (unless that is the
    first character), in lower case, as UTF-8, modulo 1,048,576. Raises
    `InvalidDocumentId` if ``id`` is not a str, and ImportError without the package
    xxhash.
    """
    try:
        from xxhash import xxh64_intdigest  # optional, and few projects need buckets
    except ImportError as error:
        raise ImportError(
            "Buckets require the package xxhash. Run: pip install "
            '"django-hilo[sharding]"'
        ) from error
    if not isinstance(id, str):
        raise InvalidDocumentId(
            f"{id!r} has no bucket: expected a str, got {type(id).__name__}."
        )
    try:
        hashed = lower(deciding_part(id)).encode()
    except UnicodeEncodeError as error:
        raise InvalidDocumentId(
            f"{id!r} has no bucket: it contains half of a surrogate pair."
        ) from error
    return xxh64_intdigest(hashed) % BUCKETS


def deciding_part(id: str) -> str:
    """Return the part of an id that its bucket is of: the last anchor, or all."""
    dollar = id.rfind("$")
    return id[dollar + 1 :] if dollar > 0 else id


def lower(text: str) -> str:
    """Return a text in lower case, each character for itself, as RavenDB does."""
    # str.lower() alone would write the last sigma of a word differently.
    return text.lower() if text.isascii() else "".join(map(str.lower, text))
