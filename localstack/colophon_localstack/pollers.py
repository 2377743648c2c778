"""Event source mappings that behave as on AWS where LocalStack's pollers do not.

- A queue mapping runs as many batches at once as its MaximumConcurrency says (LocalStack: one). One thread per
  mapping long-polls the queue, and only while there is room for another batch, and hands batches to a pool of
  threads that grows as it is needed: two hundred idle workers cost nothing.
- A stream mapping is woken by a write to a table, and looks by itself only once a second; nothing is polled for in
  between. (AWS polls each shard four times a second; what a person sees is the same.)

A mapping that is disabled lets the batches that run come to their end before it says Disabled, and one that is
enabled again goes on in its stream where it was.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from localstack.services.lambda_.event_source_mapping import esm_worker_factory
from localstack.services.lambda_.event_source_mapping.esm_worker import EsmWorker
from localstack.services.lambda_.event_source_mapping.esm_worker_factory import EsmWorkerFactory
from localstack.services.lambda_.event_source_mapping.event_processor import (
    BatchFailureError,
    PartialBatchFailureError,
)
from localstack.services.lambda_.event_source_mapping.pollers.dynamodb_poller import DynamoDBPoller
from localstack.services.lambda_.event_source_mapping.pollers.poller import (
    get_batch_item_failures,
    parse_batch_item_failures,
)
from localstack.services.lambda_.event_source_mapping.pollers.sqs_poller import (
    SqsPoller,
    get_queue_url,
    transform_into_events,
)
from localstack.utils.aws.client_types import ServicePrincipal

from colophon_localstack import stream_batches

LOG = logging.getLogger(__name__)

LONG_POLL_SECONDS = 2  # how late a mapping notices that it was disabled, at most
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 30.0  # doubled from the one to the other; AWS does not say its own
STREAM_LOOK_SECONDS = 1.0  # for what was written past this process, straight to the engine
MOST_MESSAGES = 10  # of one ReceiveMessage
MOST_CONNECTIONS = 256
STOP_SECONDS = 30  # for a mapping's last batches; a function of ours runs for 20 at most
DEFAULT_CONCURRENCY = 100  # of a mapping without MaximumConcurrency; on AWS the account's limit


class Writes:
    """Says that something may be new in a stream. Any number of threads wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def tell(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_after(self, seen: int, seconds: float) -> int:
        """Waits until there has been a write since ``seen``, or for the time given. Returns the new count."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, seconds)
            return self._count


WRITES = Writes()


class BatchPool:
    """Runs batches side by side, at most ``size`` at once."""

    def __init__(self, size: int) -> None:
        self._room = threading.Semaphore(size)
        self._threads = ThreadPoolExecutor(max_workers=size, thread_name_prefix="queue-batch")

    def wait_for_room(self, seconds: float) -> bool:
        """Takes a place in the pool; the caller gives it to ``run`` or back by ``leave``."""
        return self._room.acquire(timeout=seconds)

    def leave(self) -> None:
        self._room.release()

    def run(self, work: Any, *args: Any) -> None:
        self._threads.submit(self._run, work, *args)

    def close(self) -> None:
        """Waits for what runs."""
        self._threads.shutdown(wait=True)

    def _run(self, work: Any, *args: Any) -> None:
        try:
            work(*args)
        except Exception as error:  # the messages come back after their visibility timeout
            LOG.warning("a batch failed: %r", error, exc_info=LOG.isEnabledFor(logging.DEBUG))
        finally:
            self.leave()


def install() -> None:
    stop_before_going_on()
    let_new_pollers_go_on_where_old_ones_stopped()
    poll_queues()
    poll_streams()
    allow_many_connections()


def stop_before_going_on() -> None:
    """An update makes a new worker beside the old one, which goes on for a while: a mapping that says Disabled still
    takes messages. Here the old one has come to its end first."""
    stop = EsmWorker.stop

    def stop_and_wait(worker: EsmWorker) -> None:
        stop(worker)
        if worker._poller_thread:
            worker._poller_thread.join(STOP_SECONDS)

    EsmWorker.stop = stop_and_wait


def let_new_pollers_go_on_where_old_ones_stopped() -> None:
    """A new worker is made by each update of a mapping; it would read the stream from its beginning again."""
    get_worker = EsmWorkerFactory.get_esm_worker
    latest: dict[str, Any] = {}  # a mapping's poller, by the mapping's UUID

    def get_esm_worker(factory: EsmWorkerFactory) -> EsmWorker:
        worker = get_worker(factory)
        scaling = factory.esm_config.get("ScalingConfig") or {}
        worker.poller.colophon_concurrency = int(scaling.get("MaximumConcurrency") or DEFAULT_CONCURRENCY)
        worker.poller.colophon_stopping = worker._shutdown_event
        worker.poller.colophon_mapping, worker.poller.colophon_role = factory.esm_config, factory.function_role_arn
        worker.poller.colophon_predecessor = latest.get(worker.uuid)
        latest[worker.uuid] = worker.poller
        return worker

    EsmWorkerFactory.get_esm_worker = get_esm_worker


def poll_queues() -> None:
    poll_one_batch = SqsPoller.poll_events
    SqsPoller.poll_events = lambda poller: poll_one_batch(poller) if poller.is_fifo_queue else poll_queue(poller)
    SqsPoller.close = close_queue


def poll_streams() -> None:
    poll_shard, get_records = DynamoDBPoller.poll_events, DynamoDBPoller.get_records

    def get_records_and_note(poller: DynamoDBPoller, shard_iterator: str) -> dict[str, Any]:
        response: dict[str, Any] = get_records(poller, shard_iterator)
        poller.colophon_more = bool(response.get("Records"))
        return response

    def poll_stream(poller: DynamoDBPoller) -> None:
        predecessor, poller.colophon_predecessor = poller.colophon_predecessor, None
        while predecessor is not None and not predecessor.shards:  # disabled, and so never begun
            predecessor = predecessor.colophon_predecessor
        if predecessor is not None:
            poller.shards = predecessor.shards
        if not getattr(poller, "colophon_more", False):
            # The count is taken before the look: a write during the look leads to another one.
            poller.colophon_seen = WRITES.wait_after(getattr(poller, "colophon_seen", -1), STREAM_LOOK_SECONDS)
        place = dict(poller.shards)
        try:
            poll_shard(poller)
        except Stopped:
            poller.shards = place  # the successor begins with the batch that was not brought to its end

    DynamoDBPoller.get_records = get_records_and_note
    DynamoDBPoller.poll_events = poll_stream
    DynamoDBPoller.forward_events_to_target = forward_records


class Stopped(Exception):
    """The mapping was disabled or changed between two attempts of a batch."""


def forward_records(poller: DynamoDBPoller, shard_id: str, records: list[dict[str, Any]]) -> None:
    """Brings a batch to its end by Lambda's rules. LocalStack does not split a failing batch, does not see a record's
    age, and sends to the on-failure queue without asking whether the function's role may."""
    events = poller.filter_events(poller.transform_into_events(records, shard_id))
    if not events:
        return
    events = poller.add_source_metadata(events)
    mapping, error = poller.colophon_mapping, dict[str, Any]()
    rules = stream_batches.Rules(
        retries=mapping["MaximumRetryAttempts"],
        bisect=bool(mapping.get("BisectBatchOnFunctionError")),
        age_seconds=mapping["MaximumRecordAgeInSeconds"],
    )

    def invoke(batch: list[dict[str, Any]]) -> None:
        nonlocal error
        try:
            poller.processor.process_events_batch(batch)
        except PartialBatchFailureError as failure:
            error = failure.error
            known = {stream_batches.number_of(event) for event in batch}
            failed = get_batch_item_failures(failure.partial_failure_payload, known)
            if not failed:
                raise stream_batches.Failed from failure
            raise stream_batches.FailedFrom(min(failed, key=int)) from failure
        except BatchFailureError as failure:
            error = failure.error
            raise stream_batches.Failed from failure
        except Exception as failure:  # refused for want of concurrency, for one
            LOG.warning("a batch of %s failed: %r", poller.source_arn, failure)
            raise stream_batches.Failed from failure

    def age_of(event: dict[str, Any]) -> float:
        return time.time() - float(event["dynamodb"]["ApproximateCreationDateTime"])

    def pause(failures: int) -> None:
        if poller.colophon_stopping.wait(min(FIRST_RETRY_SECONDS * 2 ** (failures - 1), LAST_RETRY_SECONDS)):
            raise Stopped

    for given_up in stream_batches.process(events, rules, invoke, age_of, pause):
        context: dict[str, Any] = {
            "requestContext": {
                "requestId": error.get("requestId"),
                "functionArn": mapping["FunctionArn"],
                "condition": given_up.condition,
                "approximateInvokeCount": given_up.attempts,
            }
        }
        if given_up.attempts:
            context["responseContext"] = {
                "statusCode": error.get("httpStatusCode"),
                "executedVersion": error.get("executedVersion"),
                "functionError": error.get("functionError"),
            }
        send_to_on_failure_queue(poller, shard_id, list(given_up.records), context)


def send_to_on_failure_queue(
    poller: DynamoDBPoller, shard_id: str, records: list[dict[str, Any]], context: dict[str, Any]
) -> None:
    """With the function's role, which needs the right to send there."""
    queue = (poller.colophon_mapping.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination")
    if not queue:
        return
    if not queue.split(":")[2] == "sqs":
        LOG.warning("only queues are on-failure destinations here, not %s", queue)
        return
    message = poller.create_dlq_event(shard_id, records, context, datetime.now(timezone.utc))
    client = esm_worker_factory.get_internal_client(
        arn=queue, role_arn=poller.colophon_role, service_principal=ServicePrincipal.lambda_, client_config=Config()
    )
    try:
        client.send_message(QueueUrl=get_queue_url(queue), MessageBody=json.dumps(message))
    except ClientError as refused:
        LOG.warning("%s records are lost: %s", len(records), refused)


def allow_many_connections() -> None:
    """All batches of a mapping share its clients, which keep ten connections open by default."""
    make_client = esm_worker_factory.get_internal_client

    def with_connections(*args: Any, client_config: Config, **kwargs: Any) -> Any:
        many = Config(max_pool_connections=MOST_CONNECTIONS)
        return make_client(*args, client_config=client_config.merge(many), **kwargs)

    esm_worker_factory.get_internal_client = with_connections


def poll_queue(poller: SqsPoller) -> None:
    """One long poll, once there is room for its batch. Called again and again by LocalStack's worker."""
    pool = getattr(poller, "colophon_pool", None)
    if pool is None:
        pool = poller.colophon_pool = BatchPool(poller.colophon_concurrency)
    if not pool.wait_for_room(LONG_POLL_SECONDS):
        return
    try:
        messages = receive(poller)
    except BaseException:
        pool.leave()
        raise
    if not messages:
        pool.leave()
        return
    pool.run(handle_batch, poller, messages)


def receive(poller: SqsPoller) -> list[dict[str, Any]]:
    """A long poll that ends with the first messages; with a batching window, LocalStack collects for its time."""
    window = {"sqs_override_wait_time_seconds": w} if (w := poller.maximum_batching_window) else {}
    response = poller.source_client.receive_message(
        QueueUrl=poller.queue_url,
        MaxNumberOfMessages=min(poller.batch_size, MOST_MESSAGES),
        WaitTimeSeconds=LONG_POLL_SECONDS,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
        sqs_override_max_message_count=poller.batch_size,  # these two become headers: more than AWS's API takes
        **window,
    )
    messages: list[dict[str, Any]] = response.get("Messages", [])
    return messages


def handle_batch(poller: SqsPoller, messages: list[dict[str, Any]]) -> None:
    """Filters, invokes, and deletes what was not reported as failed. Bodies reach the function byte for byte;
    LocalStack hands on what its JSON parser and printer make of them."""
    bodies = {message["MessageId"]: message["Body"] for message in messages}
    events = transform_into_events(messages)
    if poller.filter_patterns:
        for event in events:
            event["body"] = parsed(event["body"])
        events = poller.filter_events(events)
        for event in events:
            event["body"] = bodies[event["messageId"]]
    passed = {event["messageId"] for event in events}
    poller.delete_messages(messages, bodies.keys() - passed)
    if not events:
        return
    failed: set[str] = set()
    try:
        poller.processor.process_events_batch(poller.add_source_metadata(events))
    except PartialBatchFailureError as error:
        failed = set(parse_batch_item_failures(error.partial_failure_payload, passed))
    poller.delete_messages(messages, passed - failed)


def parsed(body: str) -> Any:
    """As a filter's pattern looks at it."""
    try:
        return json.loads(body)
    except ValueError:
        return body


def close_queue(poller: SqsPoller) -> None:
    pool = poller.__dict__.pop("colophon_pool", None)
    if pool is not None:
        pool.close()
