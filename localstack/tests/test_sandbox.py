"""A function's process behaves as one in Lambda does: the rows of Lambda's documented behaviour, one test each.

The processes are real, of the Go function beside this file; LocalStack takes no part.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
from colophon_localstack.processes import start_time
from colophon_localstack.runtime_api import MAX_RESPONSE_BYTES, Invocation
from colophon_localstack.sandbox import Answer, Sandbox, State

Make = Callable[..., Sandbox]


def invocation(number: int = 1, seconds: float = 10, **command: Any) -> Invocation:
    return Invocation(
        request_id=f"request-{number}",
        function_arn="arn:aws:lambda:eu-west-1:000000000000:function:test",
        trace_id="Root=1-5759e988-bd862e3fe1be46a994272793",
        payload=json.dumps(command).encode(),
        deadline_ms=int((time.time() + seconds) * 1000),
    )


def ready(make: Make, **environment: str) -> Sandbox:
    sandbox = make(**environment)
    assert sandbox.wait_until_initialised(10)
    return sandbox


def invoke(sandbox: Sandbox, number: int = 1, seconds: float = 10, **command: Any) -> Answer:
    answer = sandbox.invoke(invocation(number, seconds, **command), seconds)
    assert answer is not None
    return answer


def content(answer: Answer) -> Any:
    return json.loads(answer.body)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 5
    while start_time(pid) is not None:
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


def wait_until_reaped(pid: int) -> None:
    """Until nothing of the process is left, none of its threads either, and its parent has been told."""
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"


def wait_for_output(sandbox: Sandbox, line: str) -> None:
    """Until the function has printed the line: it has its event, then."""
    deadline, output = time.monotonic() + 5, ""
    while line not in output:
        assert time.monotonic() < deadline, output
        output += sandbox.take_output()
        time.sleep(0.005)


def wait_for(sandbox: Sandbox, state: State) -> None:
    deadline = time.monotonic() + 5
    while sandbox.state is not state:
        assert time.monotonic() < deadline, f"{sandbox.state}, not {state}"
        time.sleep(0.005)


def test_one_process_serves_one_invocation_after_another(sandbox: Make) -> None:
    one = ready(sandbox)
    answers = [content(invoke(one, number)) for number in range(1, 4)]
    assert [answer["count"] for answer in answers] == [1, 2, 3]
    assert {answer["pid"] for answer in answers} == {one.pid}
    assert [answer["requestId"] for answer in answers] == ["request-1", "request-2", "request-3"]


def test_the_deadline_is_the_functions_timeout_away(sandbox: Make) -> None:
    assert 8.5 < content(invoke(ready(sandbox), seconds=9))["remaining"] <= 9


def test_a_returned_error_is_the_answer_and_the_process_lives_on(sandbox: Make) -> None:
    one = ready(sandbox)
    answer = invoke(one, do="error", message="no such thing")
    assert answer.is_error
    assert content(answer)["errorMessage"] == "no such thing"
    assert content(invoke(one, 2))["count"] == 2


def test_a_panic_is_the_answer_and_the_process_has_ended_when_it_is_given(sandbox: Make) -> None:
    one = ready(sandbox)
    answer = invoke(one, do="panic")
    assert answer.is_error
    assert content(answer)["errorMessage"] == "the handler panics"
    assert content(answer)["stackTrace"]
    assert one.state is State.ENDED  # so the next event can't go to it
    assert one.invoke(invocation(2), 10) is None


def test_an_exit_in_the_handler_is_reported_with_its_status(sandbox: Make) -> None:
    answer = invoke(ready(sandbox), do="exit", code=7)
    assert answer.is_error
    assert content(answer) == {
        "errorType": "Runtime.ExitError",
        "errorMessage": "RequestId: request-1 Error: Runtime exited with error: exit status 7",
    }


def test_an_exit_with_status_0_is_an_error_too(sandbox: Make) -> None:
    answer = invoke(ready(sandbox), do="exit", code=0)
    assert content(answer)["errorMessage"] == "RequestId: request-1 Error: Runtime exited without providing a reason"


def test_a_timeout_ends_the_process_with_lambdas_own_error(sandbox: Make) -> None:
    one = ready(sandbox)
    begun = time.monotonic()
    answer = invoke(one, do="sleep", millis=60_000, seconds=0.5)
    assert 0.5 <= time.monotonic() - begun < 2
    assert answer.is_error and answer.timed_out
    assert content(answer) == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": "RequestId: request-1 Error: Task timed out after 0.50 seconds",
    }
    assert start_time(one.pid) is None


def test_a_timeout_ends_what_the_function_has_started_as_well(sandbox: Make) -> None:
    one = ready(sandbox)
    child = content(invoke(one, do="child"))["child"]
    assert start_time(child) is not None
    invoke(one, 2, do="sleep", millis=60_000, seconds=0.3)
    wait_until_gone(child)


def test_a_child_that_holds_the_log_open_does_not_keep_an_exit_from_being_seen(sandbox: Make) -> None:
    one = ready(sandbox)
    child = content(invoke(one, do="child"))["child"]
    assert content(invoke(one, 2, do="exit", code=1))["errorType"] == "Runtime.ExitError"
    wait_until_gone(child)


def test_a_process_killed_during_an_invocation_is_reported_by_its_signal(sandbox: Make) -> None:
    one = ready(sandbox)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(invoke, one, do="sleep", millis=60_000, message="asleep")
        wait_for_output(one, "asleep")
        os.kill(one.pid, signal.SIGKILL)
        answer = running.result(5)
    assert content(answer)["errorMessage"] == "RequestId: request-1 Error: Runtime exited with error: signal: killed"


def test_a_process_killed_while_idle_takes_no_invocation_with_it(sandbox: Make) -> None:
    one = ready(sandbox)
    invoke(one)
    os.kill(one.pid, signal.SIGKILL)
    wait_until_reaped(one.pid)
    # Whether its death has been noticed here yet or not, the invocation comes back unused.
    assert one.invoke(invocation(2), 10) is None


def test_an_exit_before_the_first_event_is_a_failed_initialisation(sandbox: Make) -> None:
    one = sandbox(INIT="exit")
    assert not one.wait_until_initialised(10)
    failure = one.init_failure("request-1", 10)
    assert content(failure)["errorMessage"] == "RequestId: request-1 Error: Runtime exited with error: exit status 3"
    assert one.take_output() == "about to exit in init\n"


def test_a_panic_before_the_first_event_is_a_failed_initialisation(sandbox: Make) -> None:
    one = sandbox(INIT="panic")
    assert not one.wait_until_initialised(10)
    assert "exit status 2" in content(one.init_failure("request-1", 10))["errorMessage"]
    assert "init panics" in one.take_output()


def test_an_initialisation_that_hangs_is_ended_at_its_limit(sandbox: Make) -> None:
    one = sandbox(INIT="hang")
    assert not one.wait_until_initialised(0.3)
    assert content(one.init_failure("request-1", 0.3))["errorType"] == "Sandbox.Timedout"
    assert start_time(one.pid) is None


def test_an_init_error_that_the_runtime_reports_is_passed_on(sandbox: Make) -> None:
    one = sandbox(INIT="hang")
    error = b'{"errorType":"Runtime.NoSuchHandler","errorMessage":"no handler"}'
    address = f"http://{one._api.address}/2018-06-01/runtime/init/error"
    urllib.request.urlopen(urllib.request.Request(address, data=error), timeout=5)
    assert not one.wait_until_initialised(10)
    assert one.init_failure("request-1", 10) == Answer(error, is_error=True)


def test_what_was_printed_belongs_to_the_invocation_that_printed_it(sandbox: Make) -> None:
    one = ready(sandbox)
    one.take_output()
    for number in range(50):
        invoke(one, number, do="print", message=f"line {number}")
        assert one.take_output() == f"line {number}\n"


def test_output_larger_than_a_pipe_does_not_stop_the_function(sandbox: Make) -> None:
    one = ready(sandbox)
    invoke(one, do="print", message="x" * 300_000)
    assert len(one.take_output()) == 300_001


def test_a_response_over_6_mb_is_refused(sandbox: Make) -> None:
    answer = invoke(ready(sandbox), do="large", bytes=MAX_RESPONSE_BYTES)  # and two quotes
    assert content(answer) == {
        "errorType": "Function.ResponseSizeTooLarge",
        "errorMessage": "Response payload size exceeded maximum allowed payload size (6291556 bytes).",
    }


def test_a_response_of_6_mb_passes(sandbox: Make) -> None:
    answer = invoke(ready(sandbox), do="large", bytes=MAX_RESPONSE_BYTES - 2)
    assert not answer.is_error
    assert len(answer.body) == MAX_RESPONSE_BYTES


def test_a_process_may_not_ask_for_the_next_event_before_it_has_answered(sandbox: Make) -> None:
    one = ready(sandbox)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(invoke, one, do="sleep", millis=300)
        wait_for(one, State.BUSY)
        address = f"http://{one._api.address}/2018-06-01/runtime/invocation/next"
        try:
            urllib.request.urlopen(address, timeout=5)
            raise AssertionError("it got another event")
        except urllib.error.HTTPError as refused:
            assert refused.code == 403
        assert not running.result(5).is_error


def test_an_answer_under_an_unknown_id_does_not_count(sandbox: Make) -> None:
    one = ready(sandbox)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(invoke, one, do="sleep", millis=300)
        wait_for(one, State.BUSY)
        address = f"http://{one._api.address}/2018-06-01/runtime/invocation/another/response"
        try:
            urllib.request.urlopen(urllib.request.Request(address, data=b"{}"), timeout=5)
            raise AssertionError("it was taken")
        except urllib.error.HTTPError as refused:
            assert refused.code == 400
        assert content(running.result(5))["requestId"] == "request-1"


def test_kill_leaves_neither_process_nor_thread(sandbox: Make) -> None:
    before = set(threading.enumerate())
    several = [ready(sandbox) for _ in range(5)]
    for one in several:
        invoke(one)
        one.kill()
        assert start_time(one.pid) is None
    deadline = time.monotonic() + 5
    while left := [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
