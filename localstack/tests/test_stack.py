"""The command that starts, deploys and ends: what it reads, what it makes, and what it says when it can't."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pytest

from colophon_localstack.processes import ProcessBook
from colophon_localstack.stack import command, docker
from colophon_localstack.stack.deployment import Deployment, Package, folder_of, read_template
from colophon_localstack.stack.settings import ROOT, Failed, Settings, free_port
from conftest import HERE, Stack

RELAYS = {"StreamRelay": "http://127.0.0.1:1/", "QueueRelay": "http://127.0.0.1:1/", "SlowQueueRelay": "http://127.0.0.1:1/"}


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


@pytest.mark.parametrize(
    ("function", "folder"),
    [("ApiFunction", "api"), ("OutboxStreamFunction", "outbox-stream"), ("DeliverFunction", "deliver"), ("SweepFunction", "sweep")],
)
def test_a_function_is_built_into_the_folder_of_its_name(function: str, folder: str) -> None:
    assert folder_of(function) == folder


def test_short_forms_of_a_template_are_written_out() -> None:
    text = "{a: !Ref X, b: !GetAtt X.Y.Z, c: !If [C, !Sub 'a${X}', 2], d: !GetAtt [X, Y], e: !Condition C, Version: 2012-10-17}"
    assert read_template(text) == {
        "a": {"Ref": "X"},
        "b": {"Fn::GetAtt": ["X", "Y.Z"]},
        "c": {"Fn::If": ["C", {"Fn::Sub": "a${X}"}, 2]},
        "d": {"Fn::GetAtt": ["X", "Y"]},
        "e": {"Condition": "C"},
        "Version": "2012-10-17",
    }


def test_the_same_binary_gives_the_same_package() -> None:
    first, again, other = Package(b"binary"), Package(b"binary"), Package(b"another")
    assert first.content == again.content
    assert first.digest == again.digest != other.digest
    with zipfile.ZipFile(BytesIO(first.content)) as package:
        (entry,) = package.infolist()
        assert (entry.filename, entry.external_attr >> 16 & 0o777) == ("bootstrap", 0o755)
        assert package.read(entry) == b"binary"


def test_a_function_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="CommandFunction is not built: there is no .*command/bootstrap"):
        Deployment(Settings(template=HERE / "template.yaml", functions=tmp_path))


def test_a_parameter_that_the_template_lacks_is_named(functions: Path) -> None:
    settings = Settings(template=HERE / "template.yaml", functions=functions, parameters={"Colour": "red"})
    with pytest.raises(Failed, match="has no parameter Colour"):
        Deployment(settings)


def test_a_process_book_ends_what_it_holds_and_nothing_else(tmp_path: Path) -> None:
    book, ours, other = ProcessBook(tmp_path), sleeper(), sleeper()
    try:
        book.record(ours.pid, "ours")
        # A number that was given to another process after ours had ended: the time of its start tells.
        (tmp_path / str(other.pid)).write_text(f"{psutil.Process(other.pid).create_time() - 100}\nours\n")
        assert book.alive() == {ours.pid: "ours"}
        assert book.end_all() == []
        assert ours.wait(5) < 0
        assert other.poll() is None
        assert book.alive() == {}
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("variables", "words", "says"),
    [
        ({"COLOPHON_PORT": "abc"}, ["down"], "'abc' is not a port"),
        ({"COLOPHON_PORT": "0"}, ["up"], "'0' is not a port"),
        ({}, ["up", "--port", "65536"], "'65536' is not a port"),
        ({"COLOPHON_MODE": "hosts"}, ["up"], "'hosts' is not a mode"),
        ({}, ["up", "--parameter", "Colour"], "'Colour' is not NAME=VALUE"),
    ],
)
def test_wrong_words_are_named_before_anything_is_done(
    variables: dict[str, str], words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        command.parser().parse_args(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_busy_port_is_named_and_its_holder_left_alone(functions: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = Settings(port=port, template=HERE / "template.yaml", functions=functions, parameters=RELAYS, mode="host")
        with pytest.raises(Failed, match=f"port {port} is in use by another program.*COLOPHON_PORT"):
            command.bring_up(settings)
    assert not ProcessBook(settings.processes).alive()
    shutil.rmtree(settings.folder, ignore_errors=True)


def test_a_deployment_that_fails_says_why_and_leaves_nothing_running(functions: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(
        "Resources: {Queue: {Type: 'AWS::SQS::Queue', Properties: {QueueName: 'not a name'}}}",
    )
    settings = Settings(port=free_port(), template=template, functions=functions, mode="host")
    with pytest.raises(Failed, match=r"(?s)the deployment failed.*Queue \(AWS::SQS::Queue\): .*alphanumeric"):
        command.bring_up(settings)
    assert not ProcessBook(settings.processes).alive()
    assert not settings.state()
    with socket.create_server(("127.0.0.1", settings.port)):
        pass  # free again
    shutil.rmtree(settings.folder)


def test_nothing_is_done_where_nothing_has_changed(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("it was deployed again")

    monkeypatch.setattr(Deployment, "deploy", refuse)
    command.bring_up(stack.settings)


def test_changed_code_is_deployed_by_itself_and_runs(
    stack: Stack, functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path / "functions"
    shutil.copytree(functions, changed)
    with (changed / "command" / "bootstrap").open("ab") as bootstrap:
        bootstrap.write(b"changed")  # behind the program's end: it runs as before
    lambdas, name = stack.client("lambda"), stack.resources["CommandFunction"]
    before = lambdas.get_function_configuration(FunctionName=name)["CodeSha256"]
    settings = stack.settings
    monkeypatch.setattr(Deployment, "_deploy_stack", lambda _: pytest.fail("the whole stack was deployed"))
    again = Settings(settings.port, settings.template, changed, settings.parameters, settings.mode)
    command.bring_up(again)
    assert lambdas.get_function_configuration(FunctionName=name)["CodeSha256"] != before
    assert lambdas.invoke(FunctionName=name, Payload=b"{}").get("FunctionError") is None
    command.bring_up(settings)  # and back
    assert lambdas.get_function_configuration(FunctionName=name)["CodeSha256"] == before


def test_exec_runs_a_command_that_finds_the_stack(stack: Stack, capfd: pytest.CaptureFixture[str]) -> None:
    script = 'echo "$AWS_ENDPOINT_URL $AWS_REGION $COLOPHON_STACK ${AWS_CA_BUNDLE-none}"; exit 7'
    assert command.main(["exec", "--port", str(stack.settings.port), "--", "sh", "-c", script]) == 7
    state = stack.state
    assert capfd.readouterr().out == f"{state['endpoint']} {state['region']} {stack.settings.state_file} none\n"


def test_logs_shows_the_functions_lines(stack: Stack, capfd: pytest.CaptureFixture[str]) -> None:
    stack.client("lambda").invoke(
        FunctionName=stack.resources["CommandFunction"], Payload=b'{"do": "print", "message": "seen in logs"}'
    )
    deadline = time.monotonic() + 5
    while "command        seen in logs\n" not in (out := capfd.readouterr().out):
        assert time.monotonic() < deadline, out
        assert command.main(["logs", "--port", str(stack.settings.port), "--once"]) == 0


def test_a_stack_that_is_not_up_is_said_to_be_so(capfd: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert command.main(["logs", "--port", str(port)]) == 1
    assert command.main(["exec", "--port", str(port), "--", "true"]) == 1
    said = capfd.readouterr().err
    assert said.count("`make up` starts one") == 2
    assert "Traceback" not in said


def installer(path: str, *arguments: str, tools: Path) -> subprocess.CompletedProcess[str]:
    """The installer in a copy of the repository's layout, with nothing on PATH but what is named."""
    root = tools / "repository"
    (root / "localstack").mkdir(parents=True, exist_ok=True)
    for name in ("install", "find-python"):
        shutil.copy(ROOT / "localstack" / name, root / "localstack")
    shutil.copy(ROOT / "go.mod", root)
    variables = {"PATH": path, "HOME": str(tools), "PYENV_ROOT": str(tools), "COLOPHON_PYTHON_FOLDERS": ""}
    return subprocess.run(
        ["/bin/bash", str(root / "localstack" / "install"), *arguments], env=variables, capture_output=True, text=True
    )


@pytest.fixture
def tools(tmp_path: Path) -> Callable[..., Path]:
    """A folder for PATH with the system's small tools and, of the others, those named."""

    def make(*names: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("bash", "dirname", "cat", "sed", "awk", "grep", "sort", "paste", "ls", "cut", "sha256sum", *names):
            found = shutil.which(name)
            assert found, name
            (folder / name).symlink_to(found)
        return folder

    return make


def test_each_missing_prerequisite_is_named_in_a_line_of_its_own(tools: Callable[..., Path], tmp_path: Path) -> None:
    result = installer(str(tools()), "prerequisites", tools=tmp_path)
    assert result.returncode == 1
    go, cargo, python = result.stderr.splitlines()
    assert go.startswith("colophon: Go 1.26.0 or newer is missing: install it from")
    assert cargo.startswith("colophon: cargo is missing")
    assert python.startswith("colophon: no fitting Python found (3.10 to 3.13 with venv; seen: none)")


def test_a_missing_compiler_is_named(tools: Callable[..., Path], tmp_path: Path) -> None:
    result = installer(str(tools("cargo")), "prerequisites", tools=tmp_path)
    assert "colophon: a C compiler is missing" in result.stderr


def test_a_missing_git_is_named(tools: Callable[..., Path], tmp_path: Path) -> None:
    result = installer(str(tools("cargo", "cc")), "prerequisites", tools=tmp_path)
    assert "colophon: git is missing" in result.stderr


@pytest.mark.parametrize(("checksum", "builds"), [("0" * 64, False), (None, False), ("pinned", True)])
def test_a_crate_with_another_checksum_is_not_built(
    tools: Callable[..., Path], tmp_path: Path, checksum: str | None, builds: bool
) -> None:
    folder = tools("cc", "git", "mkdir", "rm", "cp", "touch")
    pinned = re.search(r"^dynoxide_checksum=(\w{64})", (ROOT / "localstack" / "install").read_text(), re.M)
    assert pinned
    source = tmp_path / "dynoxide-rs-3.2.0"
    source.mkdir()
    lock = ['[[package]]', 'name = "dynoxide-rs"', 'version = "3.2.0"', 'source = "registry"']
    lock += [f'checksum = "{pinned[1] if checksum == "pinned" else checksum}"'] if checksum else []
    (tmp_path / "lock").write_text("\n".join(lock) + "\n")
    cargo = folder / "cargo"
    cargo.write_text(
        f"""#!/bin/bash
        case $1 in
          metadata) cp {tmp_path}/lock Cargo.lock; echo '{{"manifest_path":"{source}/Cargo.toml"}}' ;;
          install) touch {tmp_path}/built ;;
        esac"""
    )
    cargo.chmod(0o755)
    (source / "Cargo.toml").touch()
    (tmp_path / "repository" / "localstack").mkdir(parents=True)
    (tmp_path / "repository" / "localstack" / "dynoxide.patch").write_text("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
    result = installer(str(folder), "dynoxide", tools=tmp_path)
    assert (result.returncode == 0, (tmp_path / "built").exists()) == (builds, builds), result.stderr
    if not builds:
        assert "is another than the one whose checksum is in localstack/install: it is not built." in result.stderr


def test_a_python_that_does_not_fit_is_named(tools: Callable[..., Path], tmp_path: Path) -> None:
    folder = tools()
    old = folder / "python3"
    old.write_text('#!/bin/bash\n[ "$1" = -c ] && echo "7 fit /old/python3"\n')
    old.chmod(0o755)
    result = installer(str(folder), "prerequisites", tools=tmp_path)
    assert "(3.10 to 3.13 with venv; seen: 3.7)" in result.stderr


def test_the_version_managers_pythons_are_found_and_the_newest_fitting_taken(tools: Callable[..., Path], tmp_path: Path) -> None:
    folder = tools()
    for minor in (9, 11, 13, 14):
        python = tmp_path / "versions" / f"3.{minor}.0" / "bin" / "python3"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/bash\necho "{minor} fit {python}"\n')
        python.chmod(0o755)
    variables = {"PATH": str(folder), "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path), "COLOPHON_PYTHON_FOLDERS": ""}

    def find(*arguments: str) -> str:
        script = [str(ROOT / "localstack" / "find-python"), *arguments]
        return subprocess.run(["/bin/bash", *script], env=variables, capture_output=True, text=True).stdout.strip()

    assert find() == str(tmp_path / "versions" / "3.13.0" / "bin" / "python3")
    assert find("--any") == str(tmp_path / "versions" / "3.14.0" / "bin" / "python3")
    assert find("--seen") == "3.9, 3.11, 3.13, 3.14"


def test_docker_is_taken_where_an_engine_answers_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "docker"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for answer, is_there in (("exit 1", False), ("exit 0", True), ('[ "$1" = info ]', False)):
        fake.write_text(f"#!/bin/sh\n{answer}\n")
        fake.chmod(0o755)
        assert docker.is_available() is is_there, answer
    assert command.chosen_mode(Settings(mode="auto")) == "host"
    with pytest.raises(Failed, match="no Docker engine"):
        command.chosen_mode(Settings(mode="docker"))


def test_the_compose_file_runs_the_same_version_with_the_same_settings_on_loopback() -> None:
    import importlib.metadata

    import yaml

    from colophon_localstack.stack.host import behaviour

    (service,) = yaml.safe_load(docker.COMPOSE_FILE.read_text())["services"].values()
    assert service["image"] == f"localstack/localstack:{importlib.metadata.version('localstack-core')}"
    passed_on = {name for name, value in service["environment"].items() if value is None}
    assert passed_on == set(behaviour(Settings()))
    assert behaviour(Settings(port=4600))["GATEWAY_LISTEN"] == "127.0.0.1:4600"
    assert "ports" not in service
    assert service["volumes"] == [".:/opt/colophon:ro", "${COLOPHON_ALLOWED_FOLDER}:/opt/allowed:ro"]
    assert service["environment"]["COLOPHON_ALLOWED"] == f"/opt/allowed/{Settings().allowed_file.name}"


def test_with_docker_the_compose_file_is_brought_up_and_taken_down(
    functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, calls = tmp_path / "docker", tmp_path / "calls"
    fake.write_text(f'#!/bin/sh\necho "$GATEWAY_LISTEN $*" >>{calls}\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(Deployment, "deploy", lambda _: {"stack": "deployed"})
    settings = Settings(free_port(), HERE / "template.yaml", functions, RELAYS)
    command.bring_up(settings)
    assert settings.state() == {"mode": "docker", "endpoint": settings.endpoint, "stack": "deployed"}
    assert command.take_down(settings)
    assert not settings.state()
    listen, compose = f"127.0.0.1:{settings.port}", f"compose --project-name colophon-{settings.port} --file {docker.COMPOSE_FILE}"
    assert calls.read_text().splitlines()[-2:] == [
        f"{listen} {compose} up --detach --wait --wait-timeout 120",
        f"{listen} {compose} down --volumes --timeout 5",
    ]
    shutil.rmtree(settings.folder)
