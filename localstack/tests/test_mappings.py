"""Event source mappings on the running stack. The test is the handler: the functions relay their events to it."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Handler, Stack, eventually

Records = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def quiet(stack: Stack) -> Iterator[None]:
    """Each test's handlers are its own."""
    yield
    for handler in (stack.stream_handler, stack.queue_handler, stack.slow_queue_handler):
        handler.answer = lambda records: {}


class Received:
    """A handler that notes its batches, and fails the items it is told to."""

    def __init__(self, handler: Handler, fails: Callable[[dict[str, Any], int], bool] = lambda record, times: False) -> None:
        self.batches: list[Records] = []
        self.times: dict[str, list[float]] = {}  # when each item came, by its name
        self._fails = fails
        self._lock = threading.Lock()
        handler.answer = self.answer

    def answer(self, records: Records) -> Any:
        failed = []
        with self._lock:
            self.batches.append(records)
            for record in records:
                self.times.setdefault(name_of(record), []).append(time.monotonic())
                if self._fails(record, len(self.times[name_of(record)])):
                    failed.append({"itemIdentifier": record.get("messageId") or record["dynamodb"]["SequenceNumber"]})
        return {"batchItemFailures": failed}

    @property
    def names(self) -> list[str]:
        return [name_of(record) for batch in self.batches for record in batch]


def name_of(record: dict[str, Any]) -> str:
    return str(record["body"]) if "body" in record else str(record["dynamodb"]["Keys"]["sk"]["S"])


def put(stack: Stack, *names: str, pk: str = "", ring: bool = True) -> None:
    table, pk = stack.client("dynamodb"), pk or uuid.uuid4().hex
    for start in range(0, len(names), 25):
        items = [{"pk": {"S": pk}, "sk": {"S": name}, **({"ring": {"S": "x"}} if ring else {})} for name in names[start : start + 25]]
        table.batch_write_item(RequestItems={stack.resources["Table"]: [{"PutRequest": {"Item": item}} for item in items]})


def send(stack: Stack, queue: str, *bodies: str) -> None:
    sqs = stack.client("sqs")
    for start in range(0, len(bodies), 10):
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies[start : start + 10])]
        assert not sqs.send_message_batch(QueueUrl=stack.resources[queue], Entries=entries).get("Failed")


def test_a_queue_runs_as_many_batches_at_once_as_its_maximum_concurrency(stack: Stack) -> None:
    at_once, most, lock, go_on = 0, 0, threading.Lock(), threading.Event()

    def answer(_records: Records) -> Any:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        go_on.wait(2)
        with lock:
            at_once -= 1
        return {}

    stack.queue_handler.answer = answer
    try:
        send(stack, "Queue", *(f"message {number}" for number in range(20)))
        eventually(lambda: most == 6)
        time.sleep(0.3)  # and no more come
        assert most == 6
        assert len(stack.environments("QueueFunction")) == 6
    finally:
        go_on.set()
    queue = {"QueueUrl": stack.resources["Queue"], "AttributeNames": ["All"]}

    def is_empty() -> bool:
        attributes = stack.client("sqs").get_queue_attributes(**queue)["Attributes"]
        return {attributes[f"ApproximateNumberOfMessages{kind}"] for kind in ("", "NotVisible")} == {"0"}

    eventually(is_empty)
    assert most == 6


def test_a_busy_queue_does_not_hold_up_another(stack: Stack) -> None:
    go_on = threading.Event()
    stack.queue_handler.answer = lambda records: {} if go_on.wait(2) else {}
    try:
        send(stack, "Queue", *(f"busy {number}" for number in range(6)))
        received = Received(stack.slow_queue_handler)
        begun = time.monotonic()
        send(stack, "SlowQueue", "quick")
        eventually(lambda: received.names)
        assert time.monotonic() - begun < 1.5
    finally:
        go_on.set()


def test_messages_are_delivered_within_a_second_of_sending(stack: Stack) -> None:
    received = Received(stack.slow_queue_handler)
    delays = []
    for number in range(5):
        begun = time.monotonic()
        send(stack, "SlowQueue", f"message {number}")
        eventually(lambda: f"message {number}" in received.times)
        delays.append(received.times[f"message {number}"][0] - begun)
    assert sorted(delays)[2] < 1, delays


def test_the_message_that_is_reported_as_failed_comes_back_alone(stack: Stack) -> None:
    received = Received(stack.slow_queue_handler, fails=lambda record, times: record["body"] == "bad" and times == 1)
    send(stack, "SlowQueue", "good 1", "bad", "good 2")
    eventually(lambda: len(received.times.get("bad", [])) == 2)
    first, second = received.times["bad"]
    assert 3.5 < second - first < 6  # its visibility timeout is 4 s
    assert len(received.times["good 1"]) == len(received.times["good 2"]) == 1
    counts = [record["attributes"]["ApproximateReceiveCount"] for batch in received.batches for record in batch if record["body"] == "bad"]
    assert counts == ["1", "2"]


def test_a_body_reaches_the_function_byte_for_byte(stack: Stack) -> None:
    bodies = ['{"a":1,"a" : 2}', "not JSON", '{"u":"\\u00e9é"}', " 1.0 "]
    received = Received(stack.slow_queue_handler)
    send(stack, "SlowQueue", *bodies)
    eventually(lambda: len(received.names) == len(bodies))
    assert sorted(received.names) == sorted(bodies)


def test_a_batch_whose_function_fails_comes_back_whole(stack: Stack) -> None:
    batches: list[list[str]] = []

    def answer(records: Records) -> Any:
        batches.append([record["body"] for record in records])
        if len(batches) == 1:
            raise RuntimeError("the function fails")
        return {}

    stack.slow_queue_handler.answer = answer
    bodies = ["one", "two", "three"]
    send(stack, "SlowQueue", *bodies)

    def all_came() -> bool:
        came = [body for batch in batches for body in batch]
        return bool(batches) and all(came.count(body) == (2 if body in batches[0] else 1) for body in bodies)

    eventually(all_came)


def set_enabled(stack: Stack, function: str, enabled: bool) -> None:
    lambdas = stack.client("lambda")
    (mapping,) = lambdas.list_event_source_mappings(FunctionName=stack.resources[function])["EventSourceMappings"]
    lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)
    state = "Enabled" if enabled else "Disabled"
    eventually(lambda: lambdas.get_event_source_mapping(UUID=mapping["UUID"])["State"] == state)


def test_a_disabled_mapping_takes_nothing_and_an_enabled_one_all_that_waited(stack: Stack) -> None:
    received = Received(stack.slow_queue_handler)
    set_enabled(stack, "SlowQueueFunction", False)
    try:
        send(stack, "SlowQueue", "waits 1", "waits 2")
        time.sleep(1)
        assert received.names == []
    finally:
        set_enabled(stack, "SlowQueueFunction", True)
    eventually(lambda: set(received.names) == {"waits 1", "waits 2"})


def test_a_stream_mapping_that_is_enabled_again_goes_on_where_it_was(stack: Stack) -> None:
    received = Received(stack.stream_handler)
    put(stack, "before")
    eventually(lambda: received.names == ["before"])
    set_enabled(stack, "StreamFunction", False)
    try:
        put(stack, "meanwhile")
        time.sleep(1)
        assert received.names == ["before"]
    finally:
        set_enabled(stack, "StreamFunction", True)
    put(stack, "after")
    eventually(lambda: "after" in received.names)
    assert received.names == ["before", "meanwhile", "after"]


def test_a_stream_mapping_can_be_disabled_between_two_attempts_and_loses_nothing(stack: Stack) -> None:
    received = Received(stack.stream_handler, fails=lambda record, times: times == 1)
    put(stack, "tried once")
    eventually(lambda: received.names == ["tried once"])
    set_enabled(stack, "StreamFunction", False)
    set_enabled(stack, "StreamFunction", True)
    eventually(lambda: received.names == ["tried once", "tried once"])


def test_a_stream_gives_its_records_in_order_in_batches_of_the_configured_size(stack: Stack) -> None:
    received = Received(stack.stream_handler)
    names = [f"{number:03}" for number in range(60)]
    begun = time.monotonic()
    put(stack, *names)
    eventually(lambda: len(received.names) == 60)
    assert received.names == names
    assert max(map(len, received.batches)) <= 10
    assert time.monotonic() - begun < 5  # six batches, not one for each look


def test_a_record_is_delivered_within_a_second_of_its_write(stack: Stack) -> None:
    received = Received(stack.stream_handler)
    delays = []
    for number in range(5):
        begun = time.monotonic()
        put(stack, f"record {number}")
        eventually(lambda: f"record {number}" in received.times)
        delays.append(received.times[f"record {number}"][0] - begun)
    assert sorted(delays)[2] < 1, delays


def test_the_streams_filter_keeps_records_from_the_function(stack: Stack) -> None:
    received = Received(stack.stream_handler)
    pk = uuid.uuid4().hex
    put(stack, "silent 1", "silent 2", pk=pk, ring=False)
    put(stack, "rings", pk=pk)
    eventually(lambda: "rings" in received.names)
    assert received.names == ["rings"]


def test_a_stream_goes_on_from_the_lowest_failed_record(stack: Stack) -> None:
    received = Received(stack.stream_handler, fails=lambda record, times: name_of(record) == "c" and times == 1)
    put(stack, "a", "b", "c", "d")
    eventually(lambda: len(received.times.get("d", [])) == 2)
    assert [len(received.times[name]) for name in "abcd"] == [1, 1, 2, 2]


def test_a_record_that_keeps_failing_ends_in_the_on_failure_queue(stack: Stack) -> None:
    received = Received(stack.stream_handler, fails=lambda record, times: name_of(record) == "poison")
    put(stack, "poison")
    sqs, queue = stack.client("sqs"), stack.resources["OnFailureQueue"]
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages"), 20)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    failure = json.loads(message["Body"])
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert failure["DDBStreamBatchInfo"]["batchSize"] == 1
    assert failure["DDBStreamBatchInfo"]["streamArn"] == stack.outputs["StreamArn"]
    assert len(received.times["poison"]) == 3  # once, and MaximumRetryAttempts


def test_a_batch_that_makes_the_function_fail_is_split_until_the_poison_is_alone(stack: Stack) -> None:
    batches: list[list[str]] = []

    def answer(records: Records) -> Any:
        batches.append([name_of(record) for record in records])
        if "poison" in batches[-1]:
            raise RuntimeError("the function fails")
        return {}

    stack.stream_handler.answer = answer
    put(stack, "a", "b", "c", "poison", "d", "e", "f")
    sqs, queue = stack.client("sqs"), stack.resources["OnFailureQueue"]
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages"), 20)
    failure = json.loads(message["Body"])
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert failure["DDBStreamBatchInfo"]["batchSize"] == 1
    assert failure["responseContext"]["functionError"] == "Unhandled"
    assert batches.count(["poison"]) == 3  # once, and MaximumRetryAttempts
    eventually(lambda: [name for batch in batches if "poison" not in batch for name in batch] == list("abcdef"))
