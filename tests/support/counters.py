"""The rows of counters, in which tests look up what is stored."""

from django_hilo.models import HiLoDocument


def counter(
    collection: str = "orders", tag: str = "A", using: str = "default"
) -> HiLoDocument:
    return HiLoDocument.objects.using(using).get(collection=collection, node_tag=tag)


def max_of(collection: str = "orders", tag: str = "A", using: str = "default") -> int:
    return counter(collection, tag, using).max


def preset(max: int, collection: str = "orders") -> None:
    HiLoDocument.objects.create(collection=collection, node_tag="A", max=max)
