"""LocalStack's executor for Lambda functions: one environment, run as a process of this machine.

LocalStack keeps the pool (reuse, keep-alive, reserved and provisioned concurrency) and calls ``start``, ``invoke``
and ``stop`` on one executor per environment; what happens in between is done as Lambda does it:

- A failed initialisation is tried once more within the invocation, then reported to its caller, logs included;
  for provisioned concurrency it fails the provisioning.
- A process that has exited, timed out or been killed is replaced in the same environment by the next invocation.
- Only a bootstrap that is on the list of ``allowed`` is run.
- An environment that is stopped while it runs an invocation ends after it, except when LocalStack itself ends.

Not done: the memory limit, a /tmp of its own, extensions and their SIGTERM, layers, another processor's binaries.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

from localstack.runtime import events
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from colophon_localstack import allowed, reports
from colophon_localstack.environments import ENVIRONMENTS
from colophon_localstack.processes import PROCESSES
from colophon_localstack.runtime_api import Invocation
from colophon_localstack.sandbox import Answer, Sandbox, State, error_body

LOG = logging.getLogger(__name__)

INIT_SECONDS = 10.0  # Lambda's limit of the init phase
KEPT_LOG_CHARACTERS = 64_000  # of an environment, for LocalStack's own debug log


class ProcessExecutor(RuntimeExecutor):
    """One Lambda environment. LocalStack runs one invocation at a time in it."""

    init_seconds = INIT_SECONDS

    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id, function_version)
        self._lock = threading.Lock()
        self._sandbox: Sandbox | None = None
        self._environment: dict[str, str] = {}
        self._cold = False  # the next report carries the initialisation's duration
        self._early_logs = ""  # of a failed init phase: shown with the invocation that follows
        self._kept_logs = ""
        self._invoking = False
        self._stopped = False
        self._log_settings = reports.LogSettings.of(function_version.config.logging_config)
        ENVIRONMENTS.add(self)

    # LocalStack's interface.

    def start(self, env_vars: dict[str, str]) -> None:
        self._environment = as_lambda_sets_them(env_vars, self._folder())
        if failure := self._initialise("init", "", self.init_seconds):
            if self._environment.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "provisioned-concurrency":
                raise StatusErrorException("initialisation failed", payload=failure.body)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._invoking and not events.infra_stopping.is_set():
                return  # invoke() ends the process when it is through
        self._end()

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        with self._lock:
            self._invoking = True
        try:
            return self._invoke(payload)
        finally:
            with self._lock:
                self._invoking = False
                stopped = self._stopped
            if stopped:
                self._end()

    def get_logs(self) -> str:
        return self._kept_logs

    def get_address(self) -> str:
        return "127.0.0.1"

    def get_endpoint_from_executor(self) -> str:
        return "127.0.0.1"  # of AWS_ENDPOINT_URL

    def get_runtime_endpoint(self) -> str:
        return ""  # of LocalStack's own init process, which is not used

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        try:
            cls._prepare_version(function_version)
        except ValueError as error:
            LOG.warning("%s is not run: %s", function_version.qualified_arn, error)
            raise

    @classmethod
    def _prepare_version(cls, function_version: FunctionVersion) -> None:
        config = function_version.config
        if not (config.runtime or "").startswith("provided"):
            raise ValueError(f"only provided.* runtimes run as processes, not {config.runtime}")
        if config.code.is_hot_reloading():  # runs what lies in any folder of the machine, which may change at any time
            raise ValueError("functions run from their packages only, not from folders")
        config.code.prepare_for_execution()
        bootstrap = config.code.get_unzipped_code_location() / "bootstrap"
        if not bootstrap.is_file() or bootstrap.is_symlink():
            raise ValueError(f"the package of {function_version.qualified_arn} has no bootstrap")
        allowed.check(bootstrap, allowed.LIST)  # nobody else can write where it lies
        bootstrap.chmod(0o755)

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Leaves the unpacked code: a version that only a changed configuration replaced shares it with its successor."""

    # For the list of environments.

    def describe(self) -> dict[str, Any]:
        sandbox = self._sandbox
        return {
            "function": self.function_version.id.function_name,
            "version": self.function_version.id.qualifier,
            "environment": self.id,
            "pid": sandbox.pid if sandbox else None,
            "state": sandbox.state.value if sandbox else State.ENDED.value,
            "request": sandbox.invocation if sandbox else None,
        }

    def kill(self) -> None:
        if self._sandbox:
            self._sandbox.kill()

    # Inside.

    def _folder(self) -> Path:
        return Path(self.function_version.config.code.get_unzipped_code_location())

    def _invoke(self, payload: dict[str, str]) -> InvocationResult:
        request_id = payload["invoke-id"]
        config = self.function_version.config
        begun = time.monotonic()
        answer: Answer | None = None
        while answer is None:
            answer = self._ensure_initialised(request_id, config.timeout)
            if answer is None:
                assert self._sandbox
                begun = time.monotonic()  # initialisation has a limit of its own
                invocation = Invocation(
                    request_id=request_id,
                    function_arn=payload["invoked-function-arn"],
                    trace_id=payload["trace-id"],
                    payload=payload["payload"].encode(),
                    deadline_ms=int((time.time() + config.timeout) * 1000),
                )
                answer = self._sandbox.invoke(invocation, config.timeout)
        return self._result(request_id, answer, time.monotonic() - begun)

    def _ensure_initialised(self, request_id: str, timeout: float) -> Answer | None:
        """None if there is a process that waits for an event, else what the caller gets."""
        if self._sandbox and self._sandbox.state is State.IDLE:
            return None
        return self._initialise("invoke", request_id, timeout)

    def _initialise(self, phase: str, request_id: str, limit: float) -> Answer | None:
        begun = time.monotonic()
        self._take_output()
        with self._lock:
            if self._stopped:
                raise StatusErrorException("environment stopped", payload=b'{"errorType":"Runtime.Unknown"}')
            try:
                sandbox = self._sandbox = Sandbox(self._folder(), self._environment)
            except OSError as error:  # not an executable of this machine
                self._sandbox = None
                message = f"RequestId: {request_id} Error: fork/exec bootstrap: {(error.strerror or '').lower()}"
                LOG.warning("%s can't be started: %s", self.function_version.qualified_arn, error)
                return Answer(error_body("Runtime.InvalidEntrypoint", message), is_error=True)
        PROCESSES.record(sandbox.pid, self.function_version.id.function_name)
        if sandbox.wait_until_initialised(limit):
            self._cold = True
            self._take_output()
            return None
        failure = sandbox.init_failure(request_id, limit)
        self._take_output()
        status = "timeout" if failure.timed_out else "error"
        self._early_logs += reports.failed_init(self._log_settings, phase, time.monotonic() - begun, status)
        return failure

    def _take_output(self) -> None:
        if self._sandbox:
            self._early_logs += self._sandbox.take_output()

    def _result(self, request_id: str, answer: Answer, seconds: float) -> InvocationResult:
        sandbox = self._sandbox
        config = self.function_version.config
        version = self.function_version.id.qualifier
        settings = self._log_settings
        run = reports.Run(
            request_id=request_id,
            version=version,
            memory_mb=config.memory_size,
            seconds=seconds,
            status="timeout" if answer.timed_out else "error" if answer.is_error else "success",
            init_seconds=sandbox.init_seconds if sandbox and self._cold else None,
        )
        written = sandbox.take_output() if sandbox else ""
        if written and not written.endswith("\n"):
            written += "\n"
        logs = self._early_logs + reports.start(settings, request_id, version) + written + reports.end(settings, run)
        self._early_logs, self._cold = "", False
        self._kept_logs = (self._kept_logs + logs)[-KEPT_LOG_CHARACTERS:]
        return InvocationResult(request_id=request_id, payload=answer.body, is_error=answer.is_error, logs=logs)

    def _end(self) -> None:
        self.kill()
        ENVIRONMENTS.remove(self)


def as_lambda_sets_them(env_vars: dict[str, Any], folder: Path) -> dict[str, str]:
    """What a function finds in its environment on AWS, from what LocalStack would hand to its own init process,
    with AWS_ENDPOINT_URL as the one addition: that is how the SDK finds this stack."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "en_US.UTF-8",
        **{name: str(value) for name, value in env_vars.items() if not name.startswith(("LOCALSTACK_", "EDGE_"))},
        "LAMBDA_TASK_ROOT": str(folder),
    }
    if level := environment.get("AWS_LAMBDA_LOG_LEVEL"):
        environment["AWS_LAMBDA_LOG_LEVEL"] = level.upper()
    return environment
