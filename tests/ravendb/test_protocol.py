"""What RavenDB's clients send and expect, without a database."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from django_hilo.ravendb.protocol import (
    NextRange,
    Refusal,
    capacity_of,
    error_body,
    format_last_range_at,
    integer_in,
    parse_last_range_at,
)

NOW = datetime(2026, 11, 20, 19, 51, 3, 412817, UTC)


def asked(size: int, last_range_at: datetime | None) -> NextRange:
    return NextRange("orders", size, last_range_at, "", 0)


def seconds_ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


class TestCapacity:
    @pytest.mark.parametrize(
        ("last_size", "age", "size"),
        [
            (0, None, 32),
            (500, None, 500),
            (64, 29.9, 128),
            (700_000, 1, 1_048_576),
            (64, 60.1, 32),
            (65, 61, 32),
            (1_000, 3_600, 500),
            (10, 45, 32),
            (64, -5, 128),  # a client whose clock goes ahead
        ],
    )
    def test_ravendbs_table(self, last_size, age, size):
        moment = None if age is None else seconds_ago(age)
        assert capacity_of(asked(last_size, moment), NOW, 32, 1_048_576).size == size

    @pytest.mark.parametrize("age", [None, -5, 0, 45, 3_600])
    @pytest.mark.parametrize("last_size", [2**63 - 1, 10_000_000])
    def test_no_size_passes_the_most_in_any_case(self, last_size, age):
        moment = None if age is None else seconds_ago(age)
        assert capacity_of(asked(last_size, moment), NOW, 32, 1_000).after(9) <= 1_000

    @pytest.mark.parametrize("age", [None, 0, 45, 3_600])
    @pytest.mark.parametrize("last_size", [0, -1, -(2**63)])
    def test_no_size_is_under_the_least(self, last_size, age):
        moment = None if age is None else seconds_ago(age)
        assert capacity_of(asked(last_size, moment), NOW, 32, 1_000).size == 32

    def test_the_first_request_of_the_npm_client(self):
        query = QueryDict(
            "lastBatchSize=0&tag=orders&lastRangeAt=1970-01-01T00%3A00%3A00.0000000Z"
            "&identityPartsSeparator=/&lastMax=0"
        )
        assert capacity_of(NextRange.read(query), NOW, 32, 1_048_576).size == 32


class TestLastRangeAt:
    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-11-20T19:51:03.4128170Z", NOW),
            ("2026-11-20T19:51:03.4128170", NOW),
            ("2026-11-20T21:51:03.4128170+02:00", NOW),
            ("1970-01-01T00:00:00.0000000Z", datetime(1970, 1, 1, tzinfo=UTC)),
            ("", None),
            ("  ", None),
            ("yesterday", None),
            # RavenDB's Go client trims zeros.
            ("2026-11-20T19:51:03.412817Z", NOW),
            ("2026-11-20T19:51:03.4128179Z", NOW),
            ("2026-11-20T19:51:03.4Z", NOW.replace(microsecond=400_000)),
            ("2026-11-20T19:51:03Z", NOW.replace(microsecond=0)),
            ("2026-11-20T19:51:03.Z", None),
            ("2026-11-20T19:51:03.41281700Z", None),
            ("2026-13-40T25:61:03.4128170Z", None),
            ("2026-11-20T19:51:03.4128170+99:99", None),
            ("\uff12\uff10\uff12\uff16-11-20T19:51:03.4128170Z", None),
        ],
    )
    def test_reading(self, text, moment):
        assert parse_last_range_at(text) == moment

    def test_every_time_that_was_given_reads_without_error(self):
        first = parse_last_range_at("0001-01-01T00:00:00.0000000+14:00")
        last = parse_last_range_at("9999-12-31T23:59:59.9999999-14:00")
        assert capacity_of(asked(64, first), NOW, 32, 1_000).size == 32
        assert capacity_of(asked(64, last), NOW, 32, 1_000).size == 128

    @given(st.text(max_size=40))
    def test_no_text_is_an_error(self, text):
        assert parse_last_range_at(text) is None or "T" in text

    def test_seven_digits_and_z_also_of_whole_seconds(self):
        """Both clients fail where the fraction is missing."""
        assert format_last_range_at(NOW) == "2026-11-20T19:51:03.4128170Z"
        whole = NOW.replace(microsecond=0)
        assert format_last_range_at(whole) == "2026-11-20T19:51:03.0000000Z"
        berlin = NOW.astimezone(timezone(timedelta(hours=1)))
        assert format_last_range_at(berlin) == "2026-11-20T19:51:03.4128170Z"

    @given(st.datetimes(timezones=st.just(UTC)))
    def test_what_was_written_is_read_back(self, moment):
        assert parse_last_range_at(format_last_range_at(moment)) == moment


class TestParameters:
    def test_of_next_with_nothing_but_the_tag(self):
        assert NextRange.read(QueryDict("tag=Orders")) == ("Orders", 0, None, "", 0)

    @pytest.mark.parametrize(
        "given",
        ["lastBatchSize=&lastMax=&lastRangeAt=&identityPartsSeparator=", "lastMax= "],
    )
    def test_blank_is_absent(self, given):
        assert NextRange.read(QueryDict(f"tag=a&{given}")) == ("a", 0, None, "", 0)

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ("", "'tag'"),
            ("tag=", "'tag'"),
            ("tag=a&tag=b", "'tag' was given 2 times"),
            ("tag=1a", "'1a'"),
            ("tag=a/b", "'a/b'"),
            ("tag=%00", "x00"),
            ("tag=" + "?" * 5000, "must start with a letter"),
            ("tag=" + "a" * 101, "100 are allowed"),
            ("tag=a&lastBatchSize=x", "lastBatchSize must be .* not 'x'"),
            ("tag=a&lastMax=1e3", "lastMax must be .* not '1e3'"),
            ("tag=a&lastMax=9223372036854775808", "2\\^63-1, not '92233"),
            ("tag=a&lastMax=1" + "0" * 5000, "lastMax"),
            ("tag=a&lastMax=٣", "lastMax"),
            ("tag=a&lastMax=1&lastMax=2", "'lastMax' was given 2 times"),
            ("tag=a&identityPartsSeparator=//", "'//'"),
            ("tag=a&identityPartsSeparator=|", "separator|Separator"),
        ],
    )
    def test_of_next_that_are_refused(self, given, named):
        with pytest.raises(Refusal, match=named) as refused:
            NextRange.read(QueryDict(given))
        assert refused.value.status == 400
        assert len(str(refused.value)) < 400

    @pytest.mark.parametrize("given", ["", "end=", "end=null", "last=1"])
    def test_a_number_that_is_needed(self, given):
        assert integer_in(QueryDict("end=-5"), "end") == -5
        with pytest.raises(Refusal, match="must be an integer"):
            integer_in(QueryDict(given), "end")


def test_the_body_of_an_error_has_ravendbs_fields():
    assert error_body("/x", "System.ArgumentException", "No.") == {
        "Url": "/x",
        "Type": "System.ArgumentException",
        "Message": "No.",
        "Error": "System.ArgumentException: No.",
    }
