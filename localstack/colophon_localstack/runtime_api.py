"""The Lambda Runtime API (2018-06-01) served to one process, on a loopback port of its own.

One process, one server: whatever a dead process still holds open can then take nothing that is meant for its
successor, and an invocation that no process has got can be taken back and given to that successor. The rules that live here are the protocol's:

- ``GET /invocation/next`` blocks until there is an invocation. The first one says that initialisation has
  ended, each later one that the invocation before it has.
- A response or an error counts once, and only under the id of the invocation that is running.
- A response of more than 6 MB is refused with 413.

Nothing here knows of LocalStack or of processes: see ``sandbox``.
"""

from __future__ import annotations

import http.server
import queue
import socket
import threading
from dataclasses import dataclass
from typing import Any, Protocol

PREFIX = "/2018-06-01/runtime/"

# 6 MB, and what Lambda allows on top of it; the number is part of Lambda's own error message.
MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100


@dataclass(frozen=True)
class Invocation:
    """What a process is handed by ``GET /invocation/next``."""

    request_id: str
    function_arn: str
    trace_id: str
    payload: bytes
    deadline_ms: int  # wall clock, milliseconds since 1970


class Process(Protocol):
    """The other side of the server: who is told what the process says. Calls come from the server's threads."""

    def asked_for_next(self) -> bool:
        """False where it may not: the invocation before has not been answered."""
        ...

    def failed_to_initialise(self, error: bytes) -> None: ...

    def answered(self, request_id: str, body: bytes, is_error: bool) -> bool:
        """Whether the answer counts: an unknown id, or a second answer, does not."""
        ...


class RuntimeApi:
    """Listens from the moment it is made until ``close``."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._offered: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._untaken: Invocation | None = None  # what was offered and no process has got
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name=f"runtime-api-{self.port}", daemon=True).start()

    @property
    def address(self) -> str:
        """For AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self.port}"

    def offer(self, invocation: Invocation) -> None:
        """Hands the invocation to the ``GET /invocation/next`` that waits, or to the next one."""
        with self._lock:
            self._untaken = invocation
        self._offered.put(invocation)

    def withdraw(self) -> bool:
        """Takes back what was offered, where no process has got it. A thread of the server may hold it just now:
        it then finds that it must not hand it over."""
        with self._lock:
            taken_back, self._untaken = self._untaken is not None, None
        try:
            while True:
                self._offered.get_nowait()
        except queue.Empty:
            if self._closed:
                self._offered.put(None)
            return taken_back

    def close(self) -> None:
        """Ends the waiting ``GET /invocation/next`` and stops listening. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._offered.put(None)
        # accept() is not woken everywhere by closing its socket; a connection wakes it.
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            pass

    def _accept(self) -> None:
        with self._listener:
            while not self._closed:
                connection, client = self._listener.accept()
                if self._closed:
                    connection.close()
                    return
                threading.Thread(target=self._serve, args=(connection, client), daemon=True).start()

    def _serve(self, connection: socket.socket, client: Any) -> None:
        with connection:
            try:
                _Handler(connection, client, self)  # type: ignore[arg-type]  # serves until the connection ends
            except OSError:
                pass  # the process went away

    # What the handler asks for.

    def may_have_next(self) -> bool:
        return self._closed or self._process.asked_for_next()

    def next(self) -> Invocation | None:
        invocation = self._offered.get()
        if invocation is None:
            self._offered.put(None)  # for whoever else waits
        return invocation

    def put_back(self, invocation: Invocation) -> None:
        self._offered.put(invocation)

    def take(self, invocation: Invocation) -> bool:
        """Whether it may be handed over: from then on the process has got it."""
        with self._lock:
            if self._untaken is not invocation:
                return False
            self._untaken = None
            return True

    def failed_to_initialise(self, error: bytes) -> None:
        self._process.failed_to_initialise(error)

    def answered(self, request_id: str, body: bytes, is_error: bool) -> bool:
        return not self._closed and self._process.answered(request_id, body, is_error)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: RuntimeApi  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave together

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path != PREFIX + "invocation/next":
            return self._reply(404, b'{"errorType":"NotFound"}')
        if not self.server.may_have_next():
            return self._reply(403, b'{"errorType":"InvalidStateTransition"}')
        invocation = self.server.next()
        if invocation is None:
            self.close_connection = True
            return self._reply(410, b'{"errorType":"EnvironmentStopped"}')
        if self._peer_has_gone():
            self.close_connection = True
            return self.server.put_back(invocation)
        if not self.server.take(invocation):
            self.close_connection = True
            return self._reply(410, b'{"errorType":"EnvironmentStopped"}')
        self._reply(
            200,
            invocation.payload,
            {
                "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
                "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
                "Lambda-Runtime-Trace-Id": invocation.trace_id,
            },
        )

    def do_POST(self) -> None:
        body = self._body()
        match self.path.removeprefix(PREFIX).split("/"):
            case ["init", "error"]:
                self.server.failed_to_initialise(body)
            case ["invocation", request_id, "response"]:
                if len(body) > MAX_RESPONSE_BYTES:
                    message = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
                    error = b'{"errorType":"Function.ResponseSizeTooLarge","errorMessage":"%s"}' % message.encode()
                    self.server.answered(request_id, error, is_error=True)
                    return self._reply(413, b'{"errorType":"RequestEntityTooLarge"}')
                if not self.server.answered(request_id, body, is_error=False):
                    return self._reply(400, b'{"errorType":"InvalidRequestID"}')
            case ["invocation", request_id, "error"]:
                if not self.server.answered(request_id, body, is_error=True):
                    return self._reply(400, b'{"errorType":"InvalidRequestID"}')
            case _:
                return self._reply(404, b'{"errorType":"NotFound"}')
        self._reply(202, b'{"status":"OK"}')

    def _peer_has_gone(self) -> bool:
        """Whether the process died while it waited here: its end of the connection is then closed."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return bytes(body)

    def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
