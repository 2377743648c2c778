"""Functions on the running stack: LocalStack's pool and our executor together behave as Lambda does."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from colophon_localstack.processes import start_time
from conftest import Stack, eventually


class Function:
    """A function of a test's own, made from the tests' binary and gone after the test."""

    def __init__(self, stack: Stack, timeout: int = 10, **environment: str) -> None:
        self.lambdas = stack.client("lambda")
        self.stack = stack
        template = self.lambdas.get_function(FunctionName=stack.resources["CommandFunction"])
        with urllib.request.urlopen(template["Code"]["Location"]) as code:
            package = code.read()
        configuration = template["Configuration"]
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.log_group = configuration["LoggingConfig"]["LogGroup"]
        self.lambdas.create_function(
            FunctionName=self.name,
            Runtime=configuration["Runtime"],
            Handler="bootstrap",
            Role=configuration["Role"],
            Code={"ZipFile": package},
            Timeout=timeout,
            LoggingConfig={"LogFormat": "Text", "LogGroup": self.log_group},
            Environment={"Variables": environment},
        )

    def invoke(self, qualifier: str = "$LATEST", **command: Any) -> dict[str, Any]:
        answer = self.lambdas.invoke(FunctionName=self.name, Payload=json.dumps(command), Qualifier=qualifier, LogType="Tail")
        return {"error": answer.get("FunctionError"), **as_object(json.load(answer["Payload"]))}

    def processes(self) -> list[dict[str, Any]]:
        found = self.stack.get(self.stack.state["environments"])
        return [one for one in found if one["function"] == self.name and one["state"] != "ended"]

    def log_lines(self) -> list[str]:
        events = self.stack.client("logs").filter_log_events(logGroupName=self.log_group)["events"]
        return [event["message"].rstrip("\n") for event in events]

    def delete(self) -> None:
        self.lambdas.delete_function(FunctionName=self.name)


def as_object(payload: Any) -> dict[str, Any]:
    return payload if isinstance(payload, dict) else {"payload": payload}


@pytest.fixture
def make_function(stack: Stack) -> Any:
    made: list[Function] = []

    def make(timeout: int = 10, **environment: str) -> Function:
        made.append(Function(stack, timeout, **environment))
        return made[-1]

    yield make
    for function in made:
        function.delete()


def test_one_environment_serves_one_invocation_after_another(make_function: Any) -> None:
    function = make_function()
    answers = [function.invoke() for _ in range(3)]
    assert len({answer["pid"] for answer in answers}) == 1
    assert [answer["count"] for answer in answers] == [1, 2, 3]


def test_after_a_panic_an_exit_or_a_timeout_the_next_invocation_finds_a_new_process(make_function: Any) -> None:
    function = make_function(timeout=1)
    pids = [function.invoke()["pid"]]
    for command, message in (
        ({"do": "panic"}, "the handler panics"),
        ({"do": "exit", "code": 7}, "exit status 7"),
        ({"do": "sleep", "millis": 60_000}, "Task timed out after 1.00 seconds"),
    ):
        failed = function.invoke(**command)
        assert failed["error"] == "Unhandled"
        assert message in failed["errorMessage"]
        answer = function.invoke()
        assert answer["count"] == 1
        pids.append(answer["pid"])
    assert len(set(pids)) == 4
    assert len(function.processes()) == 1


def test_an_environment_killed_while_idle_is_replaced(make_function: Any) -> None:
    function = make_function()
    first = function.invoke()["pid"]
    os.kill(first, signal.SIGKILL)
    eventually(lambda: start_time(first) is None)
    answer = function.invoke()
    assert answer["error"] is None
    assert answer["pid"] != first


def test_an_environment_can_be_found_and_killed_while_it_runs(make_function: Any) -> None:
    function = make_function()
    function.invoke()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(function.invoke, do="sleep", millis=5000)
        (busy,) = eventually(lambda: [one for one in function.processes() if one["state"] == "busy"])
        assert busy["request"]
        os.kill(busy["pid"], signal.SIGKILL)
        failed = running.result(5)
    assert failed["errorType"] == "Runtime.ExitError"
    assert failed["errorMessage"].endswith("signal: killed")
    assert function.invoke()["error"] is None


def test_invocations_at_once_have_an_environment_each_and_those_are_used_again(make_function: Any) -> None:
    function = make_function()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: function.invoke(do="sleep", millis=700), range(12)))
    assert [answer["error"] for answer in answers] == [None] * 12
    pids = {answer["pid"] for answer in answers}
    assert len(pids) == 12
    assert {function.invoke()["pid"] for _ in range(3)} <= pids
    assert len(function.processes()) == 12


def test_reserved_concurrency_refuses_what_is_beyond_it(make_function: Any) -> None:
    function = make_function()
    function.lambdas.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=2)

    def call(_: int) -> str:
        try:
            return str(function.invoke(do="sleep", millis=700)["error"])
        except ClientError as error:
            return str(error.response["Error"]["Code"])

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(call, range(5))) == ["None"] * 2 + ["TooManyRequestsException"] * 3


def test_provisioned_environments_are_there_before_the_first_invocation(make_function: Any) -> None:
    function = make_function()
    version = function.lambdas.publish_version(FunctionName=function.name)["Version"]
    settings = {"FunctionName": function.name, "Qualifier": version}
    function.lambdas.put_provisioned_concurrency_config(**settings, ProvisionedConcurrentExecutions=2)
    eventually(lambda: function.lambdas.get_provisioned_concurrency_config(**settings)["Status"] == "READY")
    provisioned = {one["pid"] for one in function.processes()}
    assert len(provisioned) == 2
    assert function.invoke(qualifier=version)["pid"] in provisioned


def test_a_failed_initialisation_is_tried_again_and_reported_with_its_logs(make_function: Any) -> None:
    function = make_function(INIT="exit")
    failed = function.invoke()
    assert failed["errorType"] == "Runtime.ExitError"
    assert "exit status 3" in failed["errorMessage"]
    lines = eventually(lambda: [line for line in function.log_lines() if line == "about to exit in init"])
    assert len(lines) >= 2  # once in the init phase, once in the invocation
    assert function.invoke()["error"] == "Unhandled"


def test_the_logs_are_in_the_configured_group_and_in_order(make_function: Any) -> None:
    function = make_function()
    request = function.invoke(do="print", message=f"said by {function.name}")["requestId"]
    lines = eventually(lambda: [line for line in function.log_lines() if request in line or function.name in line][:4])
    assert lines[0] == f"START RequestId: {request} Version: $LATEST"
    assert lines[1] == f"said by {function.name}"
    assert lines[2] == f"END RequestId: {request}"
    assert lines[3].startswith(f"REPORT RequestId: {request}\tDuration: ")


def test_a_function_in_json_format_has_platform_events_around_its_lines(stack: Stack) -> None:
    lambdas, group = stack.client("lambda"), f"/colophon/{stack.state['stack']}/command"
    answer = lambdas.invoke(FunctionName=stack.resources["CommandFunction"], Payload=b'{"do": "print", "message": "{}"}')
    request = json.load(answer["Payload"])["requestId"]

    def events() -> list[dict[str, Any]]:
        found = stack.client("logs").filter_log_events(logGroupName=group)["events"]
        records = [json.loads(one["message"]) for one in found if request in one["message"]]
        return [one for one in records if "record" in one]

    start, report = eventually(lambda: len(found := events()) == 2 and found)
    assert (start["type"], report["type"]) == ("platform.start", "platform.report")
    assert report["record"]["status"] == "success"
    assert report["record"]["metrics"]["memorySizeMB"] == 128


def test_the_function_sees_what_it_would_on_aws(stack: Stack) -> None:
    lambdas = stack.client("lambda")
    answer = lambdas.invoke(FunctionName=stack.resources["CommandFunction"], Payload=b'{"do": "environment"}')
    found = json.load(answer["Payload"])["environment"]
    assert found["AWS_LAMBDA_FUNCTION_NAME"] == stack.resources["CommandFunction"]
    assert found["AWS_LAMBDA_LOG_FORMAT"] == "JSON"
    assert found["AWS_LAMBDA_LOG_LEVEL"] == "INFO"
    assert found["AWS_ENDPOINT_URL"] == stack.state["endpoint"]
    assert found["AWS_SESSION_TOKEN"]  # a role's, so that each call can be judged by it
    assert not [name for name in found if name.startswith(("LOCALSTACK_", "COLOPHON_", "PYTHON"))]
    assert "HOME" not in found


def test_new_code_does_not_end_an_invocation_that_runs(make_function: Any) -> None:
    function = make_function()
    function.invoke()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(function.invoke, do="sleep", millis=900)
        eventually(lambda: [one for one in function.processes() if one["state"] == "busy"])
        function.lambdas.update_function_configuration(FunctionName=function.name, Description="another version")
        answer = running.result(5)
    assert answer["error"] is None
    eventually(lambda: start_time(answer["pid"]) is None)


def test_deleting_a_function_ends_its_processes(make_function: Any, stack: Stack) -> None:
    function = Function(stack)
    with ThreadPoolExecutor(3) as pool:
        pids = {answer["pid"] for answer in pool.map(lambda _: function.invoke(do="sleep", millis=300), range(3))}
    function.delete()
    eventually(lambda: not [pid for pid in pids if start_time(pid) is not None])


def test_the_api_has_a_stable_address_and_invokes_its_function(stack: Stack) -> None:
    assert stack.state["api"] == f"{stack.state['endpoint']}/_aws/execute-api/colophon/v1"
    with urllib.request.urlopen(urllib.request.Request(f"{stack.state['api']}/command", method="POST", data=b"")) as answer:
        assert json.load(answer)["pid"] in [one["pid"] for one in stack.environments("CommandFunction")]


def test_nothing_listens_beyond_loopback(stack: Stack) -> None:
    import psutil

    from colophon_localstack.processes import ProcessBook

    for pid, name in ProcessBook(stack.settings.processes).alive().items():
        listening = [one.laddr.ip for one in psutil.Process(pid).net_connections("inet") if one.status == "LISTEN"]
        assert set(listening) <= {"127.0.0.1", "::1"}, name
        assert listening or name != "localstack"
