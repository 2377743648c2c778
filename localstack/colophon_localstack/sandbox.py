"""One function process and its life, as Lambda runs it: started, initialised, invoked one at a time, killed.

- Initialisation ends with the first ``GET /invocation/next``; an exit or an init error before it is a failed one.
- An invocation ends with the *next* ``GET /invocation/next``, or with the exit: a process that has answered and
  is about to die takes no further event with it.
- A timeout kills the whole process group.
- What the process wrote before it asked for the next event belongs to the invocation.
- A process that has ended, for whatever reason, leaves no child behind.

Nothing here knows of LocalStack: see ``executor``.
"""

from __future__ import annotations

import enum
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colophon_localstack.runtime_api import Invocation, RuntimeApi

READ_BYTES = 1 << 16
KEPT_OUTPUT_BYTES = 1 << 20  # of one invocation; Lambda's log lines are bounded as well


class State(str, enum.Enum):
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    ENDED = "ended"


@dataclass(frozen=True)
class Answer:
    """What the caller of an invocation gets."""

    body: bytes
    is_error: bool
    timed_out: bool = False


def error_body(error_type: str, message: str) -> bytes:
    """An error in Lambda's own shape."""
    return json.dumps({"errorType": error_type, "errorMessage": message}).encode()


def exit_error(returncode: int, request_id: str) -> bytes:
    """Lambda's words for a process that went away: ``returncode`` as subprocess gives it, negative for a signal."""
    if returncode == 0:
        how = "Runtime exited without providing a reason"
    elif returncode < 0:
        how = f"Runtime exited with error: signal: {(signal.strsignal(-returncode) or 'unknown').lower()}"
    else:
        how = f"Runtime exited with error: exit status {returncode}"
    return error_body("Runtime.ExitError", f"RequestId: {request_id} Error: {how}")


def timeout_answer(request_id: str, seconds: float) -> Answer:
    message = f"RequestId: {request_id} Error: Task timed out after {seconds:.2f} seconds"
    return Answer(error_body("Sandbox.Timedout", message), is_error=True, timed_out=True)


class Sandbox:
    """Starts ``bootstrap`` of ``folder`` with exactly ``environment`` and the address of its Runtime API."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._changed = threading.Condition()
        self._state = State.STARTING
        self._invocation: str | None = None  # the id of the one that is running
        self._answer: Answer | None = None
        self._init_error: bytes | None = None
        self._init_timed_out = False
        self._output = bytearray()
        self._api = RuntimeApi(self)
        self._begun = time.monotonic()
        self.init_seconds: float | None = None  # from the start to the first GET /invocation/next
        try:
            self._process = subprocess.Popen(
                [str(folder / "bootstrap")],
                cwd=folder,
                env={**environment, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a process group of its own, to be killed as a whole
            )
        except OSError:
            self._api.close()
            raise
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._pipe_lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name=f"output-of-{self.pid}", daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, name=f"exit-of-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def state(self) -> State:
        return self._state

    @property
    def invocation(self) -> str | None:
        """The request id of the invocation that is running."""
        return self._invocation

    @property
    def returncode(self) -> int | None:
        return self._process.returncode if self._state is State.ENDED else None

    def wait_until_initialised(self, seconds: float) -> bool:
        """Waits for the first ``GET /invocation/next``. Where it does not come, the process is killed, and
        ``init_failure`` says what a caller is told."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not State.STARTING or self._init_error is not None, seconds)
            if self._state is State.IDLE:
                return True
            self._init_timed_out = self._state is State.STARTING and self._init_error is None
        self.kill()
        return False

    def init_failure(self, request_id: str, seconds: float) -> Answer:
        """What the caller of the invocation gets whose initialisation failed, ``seconds`` having been its limit."""
        if self._init_error is not None:
            return Answer(self._init_error, is_error=True)
        if self._init_timed_out:
            return timeout_answer(request_id, seconds)
        return Answer(exit_error(self._process.returncode, request_id), is_error=True)

    def invoke(self, invocation: Invocation, seconds: float) -> Answer | None:
        """Runs one invocation, which may take ``seconds``; the process may be dead afterwards. None where the
        process turned out to be dead before it got the invocation: another may have it."""
        deadline = time.monotonic() + seconds
        with self._changed:
            if self._state is not State.IDLE:
                return None
            self._state = State.BUSY
            self._invocation, self._answer = invocation.request_id, None
            self._api.offer(invocation)
            ended = self._changed.wait_for(lambda: self._state is not State.BUSY, deadline - time.monotonic())
        if not ended:
            self.kill()
        with self._changed:
            answer, self._invocation = self._answer, None
        if answer is not None:
            return answer
        if not ended:
            return timeout_answer(invocation.request_id, seconds)
        if self._api.withdraw():
            return None
        return Answer(exit_error(self._process.returncode, invocation.request_id), is_error=True)

    def kill(self) -> None:
        """Ends the process group, waits until the process is gone and closes its Runtime API. May be called again."""
        if self._state is not State.ENDED:
            self._kill_group()
        with self._changed:
            self._changed.wait_for(lambda: self._state is State.ENDED, 10)
        self._api.close()

    def take_output(self) -> str:
        """What the process has written since the last call."""
        self._drain()
        with self._pipe_lock:
            output = self._output.decode("utf-8", "replace")
            self._output.clear()
        return output

    # What the Runtime API reports, from its threads.

    def asked_for_next(self) -> bool:
        with self._changed:
            if self._state is State.ENDED or (self._state is State.BUSY and self._answer is None):
                return False
            if self._state is State.STARTING:
                self.init_seconds = time.monotonic() - self._begun
            self._state = State.IDLE
            self._changed.notify_all()
            return True

    def failed_to_initialise(self, error: bytes) -> None:
        with self._changed:
            if self._state is State.STARTING:
                self._init_error = error
                self._changed.notify_all()

    def answered(self, request_id: str, body: bytes, is_error: bool) -> bool:
        with self._changed:
            if request_id != self._invocation or self._answer is not None:
                return False
            self._answer = Answer(body, is_error)
            return True

    # The process.

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nobody left in it

    def _watch(self) -> None:
        self._process.wait()
        self._kill_group()  # its children, which would hold the pipe open too
        self._reader.join(5)
        with self._changed:
            self._state = State.ENDED
            self._changed.notify_all()
        self._api.close()

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while True:
                selector.select()
                if not self._drain():
                    break
        with self._pipe_lock:
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _drain(self) -> bool:
        """Takes all that is in the pipe now; false when the other end is closed."""
        with self._pipe_lock:
            while not self._process.stdout.closed:  # type: ignore[union-attr]
                try:
                    data = os.read(self._pipe, READ_BYTES)
                except BlockingIOError:
                    return True
                if not data:
                    break
                if len(self._output) < KEPT_OUTPUT_BYTES:
                    self._output += data
            return False
