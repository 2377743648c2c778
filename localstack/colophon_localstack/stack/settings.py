"""Where a stack is, and what it is made of."""

from __future__ import annotations

import functools
import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]  # the repository
TOOLS = ROOT / ".tools"

REGION = "eu-west-1"
ACCOUNT = "000000000000"
STACK_NAME = "colophon-local"
DEFAULT_PORT = 4566

# What the template uses, and what deploying it does.
SERVICES = [
    "cloudformation",
    "s3",
    "iam",
    "sts",
    "lambda",
    "dynamodb",
    "dynamodbstreams",
    "sqs",
    "kms",
    "events",
    "scheduler",
    "apigateway",
    "logs",
    "cloudwatch",
    "ssm",
    "sns",
]


class Failed(Exception):
    """Something a person has to know or to do, in one line or a few."""


@dataclass(frozen=True)
class Settings:
    """One stack. ``functions`` holds a folder per function with its bootstrap."""

    port: int = DEFAULT_PORT
    template: Path = ROOT / "template.yaml"
    functions: Path = ROOT / "build"
    parameters: dict[str, str] = field(default_factory=dict)
    mode: str = "auto"  # auto, host or docker
    metrics: bool = False  # of invocations and queues: they cost about as much as an invocation itself

    @property
    def folder(self) -> Path:
        return ROOT / ".run" / str(self.port)

    @property
    def state_file(self) -> Path:
        """What others read: see ``Deployment.describe``."""
        return self.folder / "stack.json"

    @property
    def log_file(self) -> Path:
        return self.folder / "localstack.log"

    @property
    def processes(self) -> Path:
        return self.folder / "processes"

    @property
    def allowed_file(self) -> Path:
        """The programs that this stack may run: see ``colophon_localstack.allowed``."""
        return self.folder / "allowed" / "sha256"

    def make_folder(self) -> None:
        """Other users of the machine see and change nothing in it."""
        for folder in (self.folder.parent, self.folder, self.allowed_file.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def state(self) -> dict[str, Any]:
        """The content of stack.json; empty where there is none."""
        try:
            content: dict[str, Any] = json.loads(self.state_file.read_text())
            return content
        except (OSError, ValueError):
            return {}

    def write_state(self, state: dict[str, Any]) -> None:
        self.make_folder()
        temporary = self.state_file.with_suffix(".new")
        temporary.write_text(json.dumps(state, indent=2) + "\n")
        os.replace(temporary, self.state_file)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def is_taken(port: int) -> bool:
    """Whether anything listens there, on loopback or on all addresses."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return False
    except OSError:
        return True


def client(service: str, settings: Settings) -> Any:
    """A client of the local stack. Nothing of the machine's own AWS configuration takes part."""
    return _client(service, settings.endpoint)


@functools.lru_cache(maxsize=64)  # making one takes a tenth of a second
def _client(service: str, endpoint: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=120, proxies={}, s3={"addressing_style": "path"}),
    )
