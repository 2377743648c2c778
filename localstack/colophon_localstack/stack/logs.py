"""The functions' log lines of a running stack, merged and in order, as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from colophon_localstack.stack.settings import Settings, client

POLL_SECONDS = 0.5


def follow(settings: Settings, keep_on: bool) -> Iterator[str]:
    """Lines from the stack's beginning; with ``keep_on`` it goes on until the stack is gone."""
    logs = client("logs", settings)
    groups = sorted(name for id, name in settings.state().get("resources", {}).items() if id.endswith("Logs"))
    shown: set[str] = set()
    while True:
        events: list[tuple[int, str, dict[str, Any]]] = []
        for group in groups:
            try:
                for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
                    events += [(one["timestamp"], group, one) for one in page["events"] if one["eventId"] not in shown]
            except EndpointConnectionError:
                return
            except ClientError:
                continue  # no such group, any more
        for timestamp, group, event in sorted(events, key=lambda one: one[0]):
            shown.add(event["eventId"])
            at = datetime.fromtimestamp(timestamp / 1000).strftime("%H:%M:%S.%f")[:-3]
            yield f"{at} {group.rsplit('/', 1)[-1]:<14} {event['message'].rstrip()}"
        if not keep_on:
            return
        time.sleep(POLL_SECONDS)
