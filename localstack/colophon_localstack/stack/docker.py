"""LocalStack from its image, where a Docker engine answers: the same settings, plug-ins and deployment."""

from __future__ import annotations

import os
import shutil
import subprocess

from colophon_localstack.stack.host import behaviour
from colophon_localstack.stack.settings import ROOT, Failed, Settings, is_taken

COMPOSE_FILE = ROOT / "localstack" / "compose.yaml"


def is_available() -> bool:
    """Whether an engine answers and the compose plug-in is there."""
    if not shutil.which("docker"):
        return False
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        try:
            if subprocess.run(command, capture_output=True, timeout=10).returncode != 0:
                return False
        except (OSError, subprocess.TimeoutExpired):
            return False
    return True


def start(settings: Settings) -> None:
    if is_taken(settings.port):
        raise Failed(
            f"port {settings.port} is in use by another program: end that, or set COLOPHON_PORT to another port."
        )
    settings.make_folder()
    settings.allowed_file.unlink(missing_ok=True)
    compose(settings, "up", "--detach", "--wait", "--wait-timeout", "120")


def stop(settings: Settings) -> bool:
    compose(settings, "down", "--volumes", "--timeout", "5")
    return True


def compose(settings: Settings, *arguments: str) -> None:
    command = ["docker", "compose", "--project-name", f"colophon-{settings.port}", "--file", str(COMPOSE_FILE), *arguments]
    variables = {**os.environ, **behaviour(settings), "COLOPHON_PORT": str(settings.port), "COLOPHON_ALLOWED_FOLDER": str(settings.allowed_file.parent)}
    result = subprocess.run(command, env=variables, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"docker compose {arguments[0]} failed:\n{result.stderr.strip()}")
