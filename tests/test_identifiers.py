import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import (
    MAX_NUMBER,
    MAX_WIDTH,
    SEPARATORS,
    DocumentId,
    IdFormat,
    anchor_in,
    parse,
)

collections = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True)
node_tags = st.from_regex(r"([A-Z]{1,4})?", fullmatch=True)
server_prefixes = st.one_of(
    st.just(""),
    st.from_regex(r"[^\s$|\x00-\x1f\x7f]{0,12}[^\s$|\x00-\x1f\x7f0-9]", fullmatch=True),
    st.sampled_from(["NorthServer/", "4,", "1-A", "x-", "7-B/"]),
)
anchors = st.one_of(
    st.none(),
    st.text(st.characters(exclude_characters="\x00"), min_size=1),
    st.sampled_from(["orders/33-A", "$", "a$b", "\n", "x-A"]),
)


@st.composite
def _document_ids(draw: st.DrawFn) -> DocumentId:
    number = draw(st.integers(1, MAX_NUMBER))
    digits = len(str(number))
    widths = st.integers(digits + 1, 19) if digits < 19 else st.nothing()
    return DocumentId(
        draw(collections),
        draw(server_prefixes),
        number,
        draw(node_tags),
        draw(anchors),
        draw(st.sampled_from(sorted(SEPARATORS))),
        draw(st.just(0) | widths),
    )


document_ids = _document_ids()


@given(document_ids)
@example(DocumentId("orders", "", 33, "A"))
@example(DocumentId("orders", "NorthServer/", 1))
@example(DocumentId("orders", "7-A", 1, "B", "$"))
def test_parts_survive_the_text(document_id):
    assert parse(str(document_id)) == document_id


@given(
    st.one_of(st.text(), document_ids.map(str), st.from_regex(r"[a-z]+/\d+(-[A-Z])?"))
)
@example("orders/33-A")
@example("orders/9223372036854775808")
@example("orders/033-A")
@example("orders/0000000000000000033-A")
@example("orders/00000000000000000033-A")
@example("orders/0-A")
@example("orders/٣")
@example("orders/x3y/4-ABCDE")
def test_a_text_survives_the_parts_or_is_refused(text):
    try:
        document_id = parse(text)
    except InvalidDocumentId as error:
        assert str(error)
    else:
        assert str(document_id) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders/33-A", ("orders", "", 33, "A", None, "/", 0)),
        ("orders/NorthServer/1", ("orders", "NorthServer/", 1, "", None, "/", 0)),
        ("orders/NorthServer/1-A", ("orders", "NorthServer/", 1, "A", None, "/", 0)),
        ("users/4,1", ("users", "4,", 1, "", None, "/", 0)),
        ("invoices/7-A$orders/33-A", ("invoices", "", 7, "A", "orders/33-A", "/", 0)),
        ("a/1$x$y", ("a", "", 1, "", "x$y", "/", 0)),
        ("OrderLines:9", ("OrderLines", "", 9, "", None, ":", 0)),
        ("order-lines_2/5-EU", ("order-lines_2", "", 5, "EU", None, "/", 0)),
        (f"a/{MAX_NUMBER}", ("a", "", MAX_NUMBER, "", None, "/", 0)),
        ("orders/007", ("orders", "", 7, "", None, "/", 3)),
        ("orders/0000000000000000042-A$x", ("orders", "", 42, "A", "x", "/", 19)),
    ],
)
def test_examples(text, parts):
    assert tuple(parse(text)) == parts
    assert str(DocumentId(*parts)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must start with a collection"),
        ("1/2", "must start with a collection"),
        ("orders", "a separator and a number"),
        ("orders/", "a separator and a number"),
        ("orders|1", "must be one ASCII punctuation"),
        ("orders/A", "a separator and a number"),
        ("orders/1-a", "a separator and a number"),
        ("orders/1-ABCDE", "a separator and a number"),
        ("orders/1-A ", "a separator and a number"),
        ("orders/0", "must be from 1 to"),
        ("orders/000", "must be from 1 to"),
        ("orders/" + "0" * 19 + "1", "has more than"),
        (f"orders/{MAX_NUMBER + 1}", "must be from 1 to"),
        ("orders/" + "9" * 5000, "has more than"),
        ("orders/1$", "anchor '' must be"),
        ("orders/1$\x00", "without NUL"),
        ("orders/a b/1", "server prefix"),
        ("orders/" + "x" * 33 + "1", "32 are allowed"),
        ("o" * 101 + "/1", "100 are allowed"),
        ("Ünits/1", "must start with a collection"),
        (None, "expected a str"),
        (33, "expected a str"),
    ],
)
def test_what_is_no_id_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidDocumentId, match=re.escape(reason)):
        parse(text)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (("1x", "", 1), "collection '1x' must start"),
        (("x\n", "", 1), "must start with a letter"),
        (("orders", "3", 1), "server prefix '3' must not end"),
        (("orders", "a$b", 1), "server prefix"),
        (("orders", "", 0), "number 0 must be from 1"),
        (("orders", "", True), "must be an int"),
        (("orders", "", "7"), "must be an int"),
        (("orders", "", 1, "a"), "node tag 'a'"),
        (("orders", "", 1, "A\n"), "node tag"),
        (("orders", "", 1, "A", ""), "anchor ''"),
        (("orders", "", 1, "A", 5), "anchor 5"),
        (("orders", "", 1, "A", None, "_"), "separator '_'"),
        (("orders", "", 1, "A", None, "//"), "separator '//'"),
        (("orders", "", 1, "A", None, ""), "separator ''"),
        (("orders", "", 42, "A", None, "/", 1), "width 1 must be 0"),
        (("orders", "", 42, "A", None, "/", 2), "larger than the 2 digits of 42"),
        (("orders", "", 42, "A", None, "/", 20), "at most 19"),
    ],
)
def test_parts_outside_the_grammar_compose_to_nothing(parts, reason):
    with pytest.raises(InvalidDocumentId, match=re.escape(reason)):
        str(DocumentId(*parts))


@given(document_ids)
def test_the_anchor_of_an_id_is_that_of_its_text(document_id):
    assert anchor_in(str(document_id)) == document_id.anchor


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("a$b$c", "b$c"),
        ("$foo", None),
        ("$foo$x", None),
        ("x$$foo", "$foo"),
        ("abc$", None),
        ("", None),
        ("$", None),
        ("Sales 2026$orders/1", "orders/1"),
    ],
)
def test_the_anchor_of_any_text(text, anchor):
    assert anchor_in(text) == anchor


def test_an_invalid_id_is_a_value_error():
    with pytest.raises(ValueError):
        parse("x")


@given(
    low=st.integers(1, MAX_NUMBER - 100),
    count=st.integers(1, 100),
    width=st.integers(0, MAX_WIDTH),
    prefix=st.sampled_from(["", "North/"]),
    tag=st.sampled_from(["", "A", "ABCD"]),
)
def test_the_ids_of_a_range(low, count, width, prefix, tag):
    format = IdFormat.of("orders", "/", prefix, tag)._replace(width=width)
    high = low + count - 1
    made = format.texts(low, high)
    assert made == [format.text(number) for number in range(low, high + 1)]
    for id, number in zip(made, range(low, high + 1), strict=True):
        assert parse(id)[:4] == ("orders", prefix, number, tag)
    digits = made[0].removeprefix(f"orders/{prefix}").partition("-")[0]
    assert digits == str(low).zfill(width)
