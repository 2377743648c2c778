"""Lambda's rules for a batch of stream records, a row each. The records are letters; what happens is written down as
it happens: "abc" for an invocation, "-x" for records given up, "." for a pause."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from colophon_localstack.stream_batches import Failed, FailedFrom, Record, Rules, number_of, process


def record(letter: str) -> Record:
    return {"dynamodb": {"SequenceNumber": letter}}


def story(letters: str, rules: Rules, function: Callable[[str, int], None], ages: dict[str, float] | None = None) -> str:
    happened: list[str] = []

    def invoke(records: list[Record]) -> None:
        batch = "".join(map(number_of, records))
        happened.append(batch)
        function(batch, happened.count(batch))

    def pause(_failures: int) -> None:
        happened.append(".")

    age_of: Callable[[Record], float] = lambda record: (ages or {}).get(number_of(record), 0)
    for given_up in process([record(letter) for letter in letters], rules, invoke, age_of, pause):
        happened.append("-" + "".join(map(number_of, given_up.records)) + " " + given_up.condition)
    return ", ".join(happened)


def fails_with(letter: str) -> Callable[[str, int], None]:
    """The function fails as long as the letter is in its batch."""

    def function(batch: str, _times: int) -> None:
        if letter in batch:
            raise Failed

    return function


def reports(letter: str, times: int = 1000) -> Callable[[str, int], None]:
    """The function reports the letter's record as failed, that many times."""
    count = 0

    def function(batch: str, _times: int) -> None:
        nonlocal count
        if letter in batch and count < times:
            count += 1
            raise FailedFrom(letter)

    return function


def fails_once(batch: str, times: int) -> None:
    if times == 1:
        raise Failed


ROWS = [
    ("all is well", "abc", Rules(), lambda batch, times: None, None, "abc"),
    ("a failed batch is tried again whole", "abc", Rules(retries=2), fails_once, None, "abc, ., abc"),
    ("attempts run out", "abc", Rules(retries=2), fails_with("b"), None, "abc, ., abc, ., abc, -abc RetryAttemptsExhausted"),
    ("no retries", "ab", Rules(retries=0), fails_with("b"), None, "ab, -ab RetryAttemptsExhausted"),
    ("bisecting leaves the poison alone", "abcd", Rules(retries=1, bisect=True), fails_with("c"), None,
     "abcd, ab, cd, c, ., c, -c RetryAttemptsExhausted, d"),
    ("bisecting keeps the order", "abcde", Rules(retries=0, bisect=True), fails_with("e"), None,
     "abcde, ab, cde, c, de, d, e, -e RetryAttemptsExhausted"),
    ("splitting costs no attempt", "abcd", Rules(retries=0, bisect=True), fails_with("a"), None,
     "abcd, ab, a, -a RetryAttemptsExhausted, b, cd"),
    ("a reported record is where it goes on", "abcd", Rules(retries=3, bisect=True), reports("c", 1), None, "abcd, ., cd"),
    ("a record that is reported again and again", "abcd", Rules(retries=2), reports("c"), None,
     "abcd, ., cd, ., cd, -cd RetryAttemptsExhausted"),
    ("old records are not tried", "abc", Rules(age_seconds=60), lambda batch, times: None, {"a": 61, "b": 60},
     "-ab RecordAgeExceeded, c"),
    ("all too old", "ab", Rules(age_seconds=60), lambda batch, times: None, {"a": 61, "b": 61}, "-ab RecordAgeExceeded"),
]


@pytest.mark.parametrize(("letters", "rules", "function", "ages", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_batch(
    letters: str, rules: Rules, function: Callable[[str, int], None], ages: dict[str, float] | None, expected: str
) -> None:
    assert story(letters, rules, function, ages) == expected


def test_without_a_limit_it_is_tried_until_it_works() -> None:
    def function(_batch: str, times: int) -> None:
        if times < 50:
            raise Failed

    assert story("a", Rules(), function).count("a") == 50


def test_a_record_grows_too_old_while_it_is_tried() -> None:
    ages = {"a": 0.0, "b": 0.0}

    def function(batch: str, _times: int) -> None:
        if "a" in batch:
            ages["a"] += 40
            raise Failed

    assert story("ab", Rules(age_seconds=60), function, ages) == "ab, ., ab, ., -a RecordAgeExceeded, b"
