"""What becomes of a batch of stream records, by Lambda's rules for stream mappings. Pure: the caller invokes, waits
and sends.

- A batch that fails is tried again, up to MaximumRetryAttempts times, then handed to the on-failure destination.
- With BisectBatchOnFunctionError a batch of more than one record that fails is split in two, in order, and each half
  is a batch of its own; splitting costs none of the attempts.
- With ReportBatchItemFailures the records before the lowest reported one are done, and the batch goes on from there.
- A record older than MaximumRecordAgeInSeconds is handed to the on-failure destination untried.
- One batch at a time: what is behind a batch that fails waits.

Source: "Process records from a stream-based source with Lambda" and "Batching behavior" in AWS's Lambda guide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


class Failed(Exception):
    """The function failed, or reported items that are not in the batch: the whole batch has failed."""


class FailedFrom(Exception):
    """The function reported failed items: the batch goes on at the lowest of them."""

    def __init__(self, sequence_number: str) -> None:
        super().__init__(sequence_number)
        self.sequence_number = sequence_number


@dataclass(frozen=True)
class Rules:
    """A mapping's settings; ``-1`` is AWS's way to say that there is no limit."""

    retries: int = -1
    bisect: bool = False
    age_seconds: float = -1


@dataclass(frozen=True)
class GivenUp:
    """Records for the on-failure destination."""

    records: Sequence[Record]
    condition: str  # RetryAttemptsExhausted or RecordAgeExceeded: Lambda's words
    attempts: int


@dataclass
class _Batch:
    records: list[Record]
    failures: int = 0


def process(
    records: list[Record],
    rules: Rules,
    invoke: Callable[[list[Record]], None],
    age_of: Callable[[Record], float],
    pause: Callable[[int], None],
) -> Iterator[GivenUp]:
    """Brings all records to an end, and yields those that are given up. ``invoke`` raises Failed or FailedFrom;
    ``pause`` waits before another attempt and is told how many have failed."""
    waiting = deque([_Batch(records)])
    while waiting:
        batch = waiting.popleft()
        if rules.age_seconds >= 0:
            expired = [record for record in batch.records if age_of(record) >= rules.age_seconds]
            if expired:
                batch.records = [record for record in batch.records if record not in expired]
                yield GivenUp(expired, "RecordAgeExceeded", batch.failures)
        if not batch.records:
            continue
        try:
            invoke(batch.records)
            continue
        except FailedFrom as failure:
            done = next(i for i, one in enumerate(batch.records) if number_of(one) == failure.sequence_number)
            batch.records = batch.records[done:]
        except Failed:
            if rules.bisect and len(batch.records) > 1:
                middle = len(batch.records) // 2
                waiting.extendleft([_Batch(batch.records[middle:]), _Batch(batch.records[:middle])])
                continue
        batch.failures += 1
        if 0 <= rules.retries < batch.failures:
            yield GivenUp(batch.records, "RetryAttemptsExhausted", batch.failures)
            continue
        pause(batch.failures)
        waiting.appendleft(batch)


def number_of(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])
