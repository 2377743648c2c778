"""What the tests share: the test function's binary, sandboxes that end with their test, and one running stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from colophon_localstack.processes import ProcessBook, start_time
from colophon_localstack.sandbox import Sandbox
from colophon_localstack.stack import command
from colophon_localstack.stack.settings import ROOT, Settings, client, free_port

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each function of the tests' template, all with the same binary."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "command").mkdir()
    bootstrap = folder / "command" / "bootstrap"
    build = ["go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o", str(bootstrap)]
    subprocess.run([*build, "./localstack/tests/testfunction"], cwd=ROOT, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
    for name in ("stream", "queue", "slow-queue"):
        (folder / name).mkdir()
        (folder / name / "bootstrap").hardlink_to(bootstrap)
    return folder


@pytest.fixture
def sandbox(functions: Path) -> Iterator[Callable[..., Sandbox]]:
    """Makes sandboxes of the test function, which end with the test."""
    made: list[Sandbox] = []

    def make(**environment: str) -> Sandbox:
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "_HANDLER": "bootstrap", **environment}
        made.append(Sandbox(functions / "command", variables))
        return made[-1]

    yield make
    for one in made:
        one.kill()


class Handler:
    """A local HTTP server: the queue and stream functions of the tests' template post their events to it, and the
    test says, by ``answer``, what they return."""

    def __init__(self) -> None:
        self.answer: Callable[[list[dict[str, Any]]], Any] = lambda records: {}
        handler = self

        class Posted(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    body, status = json.dumps(handler.answer(event["Records"])).encode(), 200
                except Exception as error:
                    body, status = str(error).encode(), 500
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Posted)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/"


class Stack:
    """A running stack of the tests' template."""

    def __init__(self, settings: Settings, relays: dict[str, Handler]) -> None:
        self.settings = settings
        self.state = settings.state()
        self.resources: dict[str, str] = self.state["resources"]
        self.outputs: dict[str, str] = self.state["outputs"]
        self.stream_handler = relays["StreamRelay"]
        self.queue_handler = relays["QueueRelay"]
        self.slow_queue_handler = relays["SlowQueueRelay"]

    def client(self, service: str) -> Any:
        return client(service, self.settings)

    def get(self, address: str) -> Any:
        with urllib.request.urlopen(address, timeout=5) as response:
            return json.load(response)

    def environments(self, function: str) -> list[dict[str, Any]]:
        """The live ones of a function, by its logical id."""
        found = self.get(self.state["environments"])
        name = self.resources[function]
        return [one for one in found if one["function"] == name and one["state"] != "ended"]


@pytest.fixture(scope="session")
def stack(functions: Path) -> Iterator[Stack]:
    relays = {"StreamRelay": Handler(), "QueueRelay": Handler(), "SlowQueueRelay": Handler()}
    settings = Settings(
        port=free_port(),
        template=HERE / "template.yaml",
        functions=functions,
        parameters={name: relay.address for name, relay in relays.items()},
        mode="host",
    )
    command.bring_up(settings)
    try:
        yield Stack(settings, relays)
    finally:
        started = ProcessBook(settings.processes).alive()
        command.take_down(settings)
        left = {pid: name for pid, name in started.items() if start_time(pid) is not None}
    assert not left, "the stack left processes behind"
    shutil.rmtree(settings.folder)


def eventually(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Waits for the condition to hold, and returns what it gave."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
    return found
