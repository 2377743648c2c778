"""dynoxide in the place of DynamoDB Local, behind LocalStack's second DynamoDB provider, streams included.

The engine keeps its tables in one SQLite file, begins with an empty one, and is started again on the same file when
it ends for whatever reason.

Settings: COLOPHON_ENGINE, the binary (without it, LocalStack keeps its own engine); COLOPHON_ENGINE_FOLDER, where
the file lies.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localstack.services.dynamodb import utils
from localstack.services.dynamodb.server import DynamodbServer
from localstack.services.dynamodb.v2.provider import DynamoDBProvider
from localstack.services.dynamodbstreams.v2.provider import DynamoDBStreamsProvider
from localstack.utils.threads import TMP_THREADS, FuncThread

from colophon_localstack.processes import PROCESSES

LOG = logging.getLogger(__name__)

RESTART_PAUSE_SECONDS = 0.1  # keeps a binary that ends at once from taking a core

# The region and account in the engine's ARNs, where DynamoDB Local says ddblocal.
ENGINE_ARN_PREFIX = "arn:aws:dynamodb:dynoxide:000000000000:"


class Engine(FuncThread):
    """The process, kept running until ``stop``; LocalStack treats it as one of its server threads."""

    def __init__(self, binary: str, port: int, database: Path) -> None:
        super().__init__(self._keep_running, name="dynoxide")
        self.auto_restart = True  # LocalStack clears it before it stops a server for good
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [binary, "--host", "127.0.0.1", "--port", str(port), "--db-path", str(database), "--log", "quiet"]
        self._lock = threading.Lock()

    def stop(self, quiet: bool = False) -> None:
        with self._lock:
            self.auto_restart = False
            super().stop(quiet=quiet)
            if self.process and self.process.poll() is None:
                self.process.kill()  # its file is not kept: nothing to bring to an end

    def _keep_running(self, _params: Any) -> None:
        while True:
            with self._lock:
                if not (self.auto_restart and self.running):
                    return
                # LocalStack's own log gets what it says; a group of its own keeps a signal to LocalStack from it.
                self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)
            PROCESSES.record(self.process.pid, "dynoxide")
            returncode = self.process.wait()
            if self.auto_restart:
                LOG.warning("dynoxide ended (%s): starting it again", returncode)
                time.sleep(RESTART_PAUSE_SECONDS)


def install(on_write: Callable[[], None]) -> None:
    """Replaces LocalStack's engine where COLOPHON_ENGINE is set. ``on_write`` is called after every request that
    may have written to a stream."""
    _tell_of_writes(on_write)
    binary = os.environ.get("COLOPHON_ENGINE")
    if not binary:
        return
    database = Path(os.environ["COLOPHON_ENGINE_FOLDER"]) / "tables.sqlite"

    def do_start_thread(server: DynamodbServer) -> Engine:
        database.parent.mkdir(parents=True, exist_ok=True)
        for end in ("", "-wal", "-shm"):
            Path(f"{database}{end}").unlink(missing_ok=True)
        engine = Engine(binary, server.port, database)
        TMP_THREADS.append(engine)  # ended with LocalStack
        engine.start()
        return engine

    DynamodbServer.do_start_thread = do_start_thread
    _translate_arns()


def address() -> dict[str, Any]:
    """Where the engine listens and its process id, for tests that go to it directly or end it."""
    server = DynamodbServer.get()
    process = getattr(server._thread, "process", None)
    return {"url": server.url, "pid": process.pid if process else None}


def _tell_of_writes(on_write: Callable[[], None]) -> None:
    writes = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "ExecuteStatement", "ExecuteTransaction"}
    forward = DynamoDBProvider.forward_request

    def forward_request(self: DynamoDBProvider, context: Any, service_request: Any = None) -> Any:
        response = forward(self, context, service_request)
        if context.operation.name in writes:
            on_write()
        return response

    DynamoDBProvider.forward_request = forward_request


def _translate_arns() -> None:
    """LocalStack rewrites what DynamoDB Local calls itself; the engine calls itself otherwise."""
    for name in ("_ddb_local_arn_pattern", "_ddb_local_exception_arn_pattern"):
        pattern = getattr(utils, name).pattern
        setattr(utils, name, re.compile(pattern.replace("ddblocal", "(?:ddblocal|dynoxide)")))

    def to_engine(_self: DynamoDBStreamsProvider, value: str) -> str:
        if not value.startswith("arn:"):
            return value  # the engine's shard iterators are opaque, and no ARNs
        return ENGINE_ARN_PREFIX + value.split(":", 5)[5]

    DynamoDBStreamsProvider.modify_stream_arn_for_ddb_local = to_engine

    fix_table_arn = DynamoDBProvider.fix_table_arn

    def fix_engine_arn(self: DynamoDBProvider, account_id: str, region_name: str, arn: str) -> str:
        return str(fix_table_arn(self, account_id, region_name, arn.replace(":dynoxide:", ":ddblocal:")))

    DynamoDBProvider.fix_table_arn = fix_engine_arn
