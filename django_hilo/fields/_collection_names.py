"""The default collection of a class, by RavenDB's convention.

The rules are frozen: a library whose plurals improve would move a model to another
collection, and its next ids to another counter.
"""

import re
from functools import cache
from hashlib import sha256

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import check_collection

# Whole words, then endings, of which the first that fits is replaced.
_PAIRS = """
person people, child children, man men, woman women, mouse mice, goose geese, foot feet,
tooth teeth, quiz quizzes, leaf leaves, half halves, shelf shelves, knife knives,
life lives, wife wives, fish fish, sheep sheep, deer deer, series series, data data,
species species, news news, information information, equipment equipment
"""
_IRREGULAR = dict(pair.split() for pair in _PAIRS.split(","))
_ENDINGS = (
    (r"(?<=[^aeiou])y$", "ies"),
    (r"(?<=[a-z]{2})sis$", "ses"),
    (r"(s|x|z|ch|sh)$", r"\1es"),
    (r"$", "s"),
)


@cache
def default_collection(class_name: str) -> str:
    """Return the collection of a class: ``Order`` orders, ``OrderLine`` OrderLines.

    RavenDB's convention: the plural, in lower case unless the plural has two or more
    upper-case letters.
    """
    # Not compiled, because each class is named once.
    last = re.search(r"[A-Z]?[^A-Z]*$", class_name)
    start = last.start() if last and not class_name.isupper() else 0
    return _in_case(class_name[:start] + _plural(class_name[start:]))


def collection_of_links(class_name: str) -> str:
    """Return the collection of a many-to-many table that Django makes.

    Its class ends in the field's name, a plural: ``Post_tags``.
    """
    return _in_case(class_name)


def _in_case(plural: str) -> str:
    capitals = sum("A" <= letter <= "Z" for letter in plural)
    return plural.lower() if capitals <= 1 else plural


def _plural(word: str) -> str:
    lower = word.lower()
    plural = _IRREGULAR.get(lower)
    if plural is None:
        ending, new = next(each for each in _ENDINGS if re.search(each[0], lower))
        plural = re.sub(ending, new, lower, count=1)
    if word.isupper() and len(word) > 1:
        return plural.upper()
    return word[:1] + plural[1:]


@cache
def collection_of_keys(app_label: str, model_name: str) -> str:
    """Return the default collection of a model's integer keys, ``shop_order``.

    Not the plural of the name, which two apps may have. A name that cannot stand in an
    id, as it is too long or not ASCII, ends in a hash of it.
    """
    name = f"{app_label}_{model_name}".lstrip("_")
    try:
        return check_collection(name)
    except InvalidDocumentId:
        digest = sha256(name.encode()).hexdigest()[:12]
        readable = re.sub(r"[^A-Za-z0-9_]", "", name)[:80]
        return f"keys_{readable}_{digest}"
