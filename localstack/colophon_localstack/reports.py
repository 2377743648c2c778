"""The lines that Lambda itself adds to a function's log: start, end and report of an invocation, failed initialisations.

In JSON format they are Lambda's platform events, held back below the configured system log level as Lambda does;
in text format the familiar START, END and REPORT lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any


@dataclass(frozen=True)
class LogSettings:
    json: bool
    quiet: bool  # a system log level above INFO: successes are not logged

    @classmethod
    def of(cls, logging_config: Mapping[str, Any] | None) -> LogSettings:
        """From a function's LoggingConfig."""
        config = logging_config or {}
        is_json = config.get("LogFormat") == "JSON"
        return cls(json=is_json, quiet=is_json and config.get("SystemLogLevel", "INFO") not in ("INFO", "DEBUG"))


@dataclass(frozen=True)
class Run:
    """One invocation, as far as its report goes. Times are in seconds."""

    request_id: str
    version: str
    memory_mb: int
    seconds: float
    status: str  # success, error or timeout: Lambda's words
    init_seconds: float | None = None


def start(settings: LogSettings, request_id: str, version: str) -> str:
    if not settings.json:
        return f"START RequestId: {request_id} Version: {version}\n"
    if settings.quiet:
        return ""
    return _event("platform.start", {"requestId": request_id, "version": version})


def end(settings: LogSettings, run: Run) -> str:
    duration = run.seconds * 1000
    billed = int(duration) + 1
    if not settings.json:
        parts = [
            f"REPORT RequestId: {run.request_id}",
            f"Duration: {duration:.2f} ms",
            f"Billed Duration: {billed} ms",
            f"Memory Size: {run.memory_mb} MB",
        ]
        if run.init_seconds is not None:
            parts.append(f"Init Duration: {run.init_seconds * 1000:.2f} ms")
        if run.status != "success":
            parts.append(f"Status: {run.status}")
        return f"END RequestId: {run.request_id}\n" + "\t".join(parts) + "\n"
    if settings.quiet and run.status == "success":
        return ""
    metrics: dict[str, Any] = {
        "durationMs": round(duration, 3),
        "billedDurationMs": billed,
        "memorySizeMB": run.memory_mb,
    }
    if run.init_seconds is not None:
        metrics["initDurationMs"] = round(run.init_seconds * 1000, 3)
    return _event("platform.report", {"requestId": run.request_id, "status": run.status, "metrics": metrics})


def failed_init(settings: LogSettings, phase: str, seconds: float, status: str) -> str:
    """``phase`` is init, or invoke for the second attempt that Lambda makes within the invocation."""
    if not settings.json:
        return f"INIT_REPORT Init Duration: {seconds * 1000:.2f} ms\tPhase: {phase}\tStatus: {status}\n"
    return _event(
        "platform.initReport",
        {
            "initializationType": "on-demand",
            "phase": phase,
            "status": status,
            "metrics": {"durationMs": round(seconds * 1000, 3)},
        },
    )


def _event(kind: str, record: Mapping[str, Any]) -> str:
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": now, "type": kind, "record": record}) + "\n"
