"""The command line: see the package's own words, or ``--help``."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from colophon_localstack import allowed
from colophon_localstack.stack import docker, host, logs
from colophon_localstack.stack.deployment import Deployment
from colophon_localstack.stack.settings import DEFAULT_PORT, REGION, ROOT, Failed, Settings, free_port


def main(arguments: Sequence[str] | None = None) -> int:
    # An end that was asked for goes through the same clean-up as a failure.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    options = parser().parse_args(arguments)
    try:
        return int(options.do(options) or 0)
    except Failed as failure:
        print(f"colophon: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(prog="localstack/stack", description="Colophon's local stack.")
    sub = commands.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Callable[[argparse.Namespace], int | None], help: str) -> argparse.ArgumentParser:
        one = sub.add_parser(name, help=help)
        one.set_defaults(do=do)
        return one

    def deploys(one: argparse.ArgumentParser) -> None:
        one.add_argument("--template", type=Path, default=ROOT / "template.yaml", help="the template to deploy")
        one.add_argument("--functions", type=Path, default=ROOT / "build" / "local", help="folders with bootstrap files")
        one.add_argument("--parameter", type=name_and_value, action="append", default=[], metavar="NAME=VALUE",
                         help="a template parameter")
        one.add_argument("--mode", type=mode_name, metavar="{auto,host,docker}", default=os.environ.get("COLOPHON_MODE") or "auto",
                         help="with a Docker engine or as processes; auto: what is there (COLOPHON_MODE)")
        one.add_argument("--metrics", action="store_true", help="functions and queues write metrics; slower")

    port = os.environ.get("COLOPHON_PORT") or str(DEFAULT_PORT)  # argparse judges a text as if it stood on the line
    one = command("up", up, "start and deploy; quick where nothing has changed")
    one.add_argument("--port", type=port_number, default=port, help="where it listens, on loopback (COLOPHON_PORT)")
    deploys(one)
    one = command("down", down, "end exactly what was started")
    one.add_argument("--port", type=port_number, default=port)
    one = command("logs", show_logs, "the functions' log lines, as they come")
    one.add_argument("--port", type=port_number, default=port)
    one.add_argument("--once", action="store_true", help="what is there now, and no more")
    one = command("exec", execute, "a command that finds the running stack by its environment variables")
    one.add_argument("--port", type=port_number, default=port)
    one.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    one = command("run", run, "a stack of its own on a free port for one command, ended after it")
    deploys(one)
    one.add_argument("--bare", action="store_true", help="without a deployment: the command makes its own")
    one.add_argument("--allow", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
                     help="programs, or zips with a bootstrap, that functions may run besides those of --functions")
    one.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    return commands


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 1 to 65535: see COLOPHON_PORT")
    return int(text)


def mode_name(text: str) -> str:
    if text not in ("auto", "host", "docker"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a mode, which is auto, host or docker: see COLOPHON_MODE")
    return text


def name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def settings_of(options: argparse.Namespace, port: int) -> Settings:
    return Settings(
        port=port,
        template=called_from() / options.template,
        functions=called_from() / options.functions,
        parameters=dict(options.parameter),
        mode=options.mode,
        metrics=options.metrics,
    )


def called_from() -> Path:
    """The folder that relative paths on the command line are meant from."""
    return Path(os.environ.get("COLOPHON_CALLED_FROM", "."))


def up(options: argparse.Namespace) -> None:
    settings = settings_of(options, options.port)
    with only_one(settings):
        bring_up(settings)
    state = settings.state()
    print(f"Up ({state['mode']}): {state.get('api', state['endpoint'])}")


def down(options: argparse.Namespace) -> None:
    settings = Settings(port=options.port)
    with only_one(settings):
        print("Down." if take_down(settings) else "Nothing was running.")


def show_logs(options: argparse.Namespace) -> None:
    settings = Settings(port=options.port)
    if not settings.state():
        raise Failed(f"there is no stack on port {settings.port}: `make up` starts one.")
    for line in logs.follow(settings, keep_on=not options.once):
        print(line, flush=True)


def execute(options: argparse.Namespace) -> int:
    settings = Settings(port=options.port)
    if not is_up(settings):
        raise Failed(f"no stack is up on port {settings.port}: `make up` starts one.")
    return run_beside(settings, command_of(options))


def run(options: argparse.Namespace) -> int:
    command = command_of(options)
    settings = settings_of(options, free_port())
    returncode = 1
    try:
        if options.bare:
            start_bare(settings)
        else:
            bring_up(settings)
        allowed.allow(settings.allowed_file, [digest_of(called_from() / program) for program in options.allow])
        returncode = run_beside(settings, command)
        return returncode
    finally:
        take_down(settings)
        if returncode == 0:
            shutil.rmtree(settings.folder, ignore_errors=True)
        else:
            print(f"colophon: the stack's log is kept in {settings.folder}", file=sys.stderr)


def digest_of(program: Path) -> str:
    try:
        return allowed.digest_of(program)
    except (OSError, KeyError):
        raise Failed(f"{program} is neither a program nor a zip with a bootstrap in it.") from None


def command_of(options: argparse.Namespace) -> list[str]:
    command: list[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise Failed("a command is needed after --.")
    return command


def run_beside(settings: Settings, command: list[str]) -> int:
    """Runs the command with what the AWS SDKs need to find the stack, and nothing that would mislead them: a bundle
    of certificates, for one, makes the SDK for Go fail on an endpoint without TLS."""
    misleading = ("AWS_CA_BUNDLE", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    variables = {
        **{name: value for name, value in os.environ.items() if name not in misleading},
        "COLOPHON_STACK": str(settings.state_file),
        "AWS_ENDPOINT_URL": settings.endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    try:
        return subprocess.run(command, env=variables, cwd=called_from()).returncode
    except FileNotFoundError:
        raise Failed(f"there is no command {command[0]}.") from None


def bring_up(settings: Settings) -> None:
    """Starts what is not running and deploys what has changed. After a failed start nothing is left running."""
    deployment = Deployment(settings)
    running, state = is_up(settings), settings.state()
    if running and state.get("shape") == deployment.shape and state.get("code") == deployment.code:
        return
    try:
        if not running:
            start_bare(settings)
        with step(f"Deploying {settings.template.name}"):
            deployed = deployment.deploy()
        settings.write_state({**settings.state(), **deployed})
    except BaseException:
        if not running:
            take_down(settings)
        raise


def start_bare(settings: Settings) -> None:
    """Starts LocalStack with nothing deployed."""
    mode = chosen_mode(settings)
    take_down(settings)  # what an earlier one may have left
    settings.write_state({"mode": mode, "endpoint": settings.endpoint})  # so that `down` knows how it was started
    try:
        with step(f"Starting LocalStack on port {settings.port}"):
            (docker if mode == "docker" else host).start(settings)
    except BaseException:
        take_down(settings)
        raise


def is_up(settings: Settings) -> bool:
    mode = settings.state().get("mode")
    return bool(mode) and (host.answers(settings) if mode == "docker" else host.is_running(settings))


def take_down(settings: Settings) -> bool:
    mode = settings.state().get("mode")
    stopped = docker.stop(settings) if mode == "docker" else host.stop(settings)
    settings.state_file.unlink(missing_ok=True)
    return stopped


def chosen_mode(settings: Settings) -> str:
    if settings.mode == "docker" and not docker.is_available():
        raise Failed("no Docker engine with the compose plug-in answers: start one, or leave COLOPHON_MODE out.")
    if settings.mode == "auto":
        return "docker" if docker.is_available() else "host"
    return settings.mode


@contextlib.contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Two commands on the same port take their turns."""
    settings.make_folder()
    with (settings.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    print(f"{what} …", end=" ", flush=True)
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        print("failed.", flush=True)
        raise
    print(f"{time.monotonic() - begun:.1f} s", flush=True)
