"""LocalStack as an ordinary process of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from colophon_localstack.processes import ProcessBook
from colophon_localstack.stack.settings import ROOT, SERVICES, TOOLS, Failed, Settings, is_taken

START_SECONDS = 90  # on a machine that is busy with builds; 2 to 6 otherwise
STOP_SECONDS = 2  # for LocalStack's own shutdown; nothing is kept, so what takes longer is killed


def environment(settings: Settings) -> dict[str, str]:
    """All that LocalStack is told; nothing of the caller's environment but PATH reaches it. See its documentation for
    the names in capitals that do not begin with COLOPHON_."""
    folder = settings.folder
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder / "home"),  # no AWS profile of the machine's
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "localstack"),
        "XDG_CACHE_HOME": str(folder / "cache"),  # plux keeps the entry points it has found there
        "FILESYSTEM_ROOT": str(folder / "files"),
        "LOCALSTACK_VOLUME_DIR": str(folder / "files"),
        "OVERRIDE_IN_DOCKER": "0",
        "COLOPHON_ENGINE": str(TOOLS / "bin" / "dynoxide"),
        "COLOPHON_ENGINE_FOLDER": str(folder / "engine"),
        "COLOPHON_PROCESSES": str(settings.processes),
        "COLOPHON_ALLOWED": str(settings.allowed_file),
        "COLOPHON_TEMPORARY": str(folder / "tmp"),
        **behaviour(settings),
    }


def behaviour(settings: Settings) -> dict[str, str]:
    """What is the same with Docker and without."""
    return {
        "GATEWAY_LISTEN": f"127.0.0.1:{settings.port}",
        "LOCALSTACK_HOST": f"127.0.0.1:{settings.port}",
        "SERVICES": ",".join(SERVICES),
        "STRICT_SERVICE_LOADING": "1",
        "LAMBDA_RUNTIME_EXECUTOR": "colophon",
        "LAMBDA_IGNORE_ARCHITECTURE": "1",
        "LAMBDA_SYNCHRONOUS_CREATE": "1",
        "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC": "0",  # our pollers wait for what they poll
        "PROVIDER_OVERRIDE_DYNAMODB": "v2",  # the provider that leaves tables and streams to an engine
        "SQS_ENDPOINT_STRATEGY": "path",  # queue URLs that resolve everywhere
        "COLOPHON_METRICS": "1" if settings.metrics else "0",
        "SQS_DISABLE_CLOUDWATCH_METRICS": "0" if settings.metrics else "1",
        "COLOPHON_CHECK_ROLES": os.environ.get("COLOPHON_CHECK_ROLES", "1"),
        "LS_LOG": os.environ.get("COLOPHON_LOG_LEVEL", "warning"),
        "IN_MEMORY_CLIENT": "1",  # its own calls of itself do not go through a socket
        # Nothing is fetched from anywhere or told to anyone.
        "DNS_ADDRESS": "0",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "DISABLE_EVENTS": "1",
        "DISABLE_UPDATES": "1",
    }


def start(settings: Settings) -> None:
    """Starts LocalStack with empty tables, queues and stacks, and waits until it answers."""
    if is_taken(settings.port):
        raise Failed(
            f"port {settings.port} is in use by another program: end that, or set COLOPHON_PORT to another port."
        )
    folder = settings.folder
    settings.make_folder()
    settings.allowed_file.unlink(missing_ok=True)
    for old in ("cache", "files", "engine", "home", "processes", "tmp"):
        shutil.rmtree(folder / old, ignore_errors=True)
        (folder / old).mkdir(parents=True)
    cache = folder / "files" / "var" / "lib" / "localstack" / "cache"
    cache.mkdir(parents=True)
    for index in (TOOLS / "venv-localstack" / "index").glob("*"):  # see index_service_models in localstack/install
        (cache / index.name).symlink_to(index)
    python = TOOLS / "venv-localstack" / "bin" / "python"
    with settings.log_file.open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-m", "localstack.runtime.main"],
            cwd=folder,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C ends the command, which then ends this
            umask=0o077,
        )
    ProcessBook(settings.processes).record(process.pid, "localstack")
    deadline = time.monotonic() + START_SECONDS
    while not (listens(settings.port) and answers(settings)):  # a request costs more than to see that nobody listens
        if process.poll() is not None:
            raise Failed(f"LocalStack ended while it started; the end of {settings.log_file}:\n{tail(settings.log_file)}")
        if time.monotonic() > deadline:
            raise Failed(f"LocalStack did not answer within {START_SECONDS} s; see {settings.log_file}.")
        time.sleep(0.05)


def stop(settings: Settings) -> bool:
    """Ends LocalStack, the engine and the functions' processes; whether any were there."""
    book = ProcessBook(settings.processes)
    if not book.alive():
        return False
    left = book.end_all(first="localstack", grace_seconds=STOP_SECONDS)
    if left:
        raise Failed(f"could not be ended: {', '.join(left)} (their numbers are in {settings.processes}).")
    return True


def is_running(settings: Settings) -> bool:
    return "localstack" in ProcessBook(settings.processes).alive().values() and answers(settings)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def answers(settings: Settings) -> bool:
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{settings.endpoint}/_localstack/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def tail(file: Path, lines: int = 20) -> str:
    try:
        return "\n".join(file.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
