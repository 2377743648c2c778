"""Nobody but the stack's own user starts a program on this machine by it: neither a web page that is open in a browser
here, nor another user of the machine. Both ways in are gone on the running stack, to the end."""

from __future__ import annotations

import io
import json
import stat
import urllib.parse
import uuid
import zipfile
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from colophon_localstack import allowed
from colophon_localstack.callers import refusal
from colophon_localstack.stack import command
from colophon_localstack.stack.settings import Failed
from conftest import Stack
from test_gateway import ask, command_path

PORT = 4566
API = "/_aws/execute-api/colophon/v1/projects"
CONTROL = "/?Action=CreateStack&StackName=x"


@pytest.mark.parametrize(
    ("target", "headers", "passes"),
    [
        ("/", {}, True),
        (CONTROL, {"Host": "localhost:4566"}, True),
        (CONTROL, {"Host": "LocalHost:4566"}, True),
        (CONTROL, {"Host": "[::1]:4566"}, True),
        # Names that lead here, chosen by others; a name without the port, or with another's; none, or two.
        (CONTROL, {"Host": "evil.example:4566"}, False),
        (API, {"Host": "evil.example:4566"}, False),
        (CONTROL, {"Host": "127.0.0.1.evil.example:4566"}, False),
        (CONTROL, {"Host": "localhost.localstack.cloud:4566"}, False),
        (CONTROL, {"Host": "127.0.0.1"}, False),
        (CONTROL, {"Host": "127.0.0.1:4567"}, False),
        (CONTROL, {"Host": []}, False),
        (CONTROL, {"Host": ["127.0.0.1:4566", "evil.example"]}, False),
        # What browsers send for pages: another's, a file's, one that this port itself answered.
        (CONTROL, {"Origin": "https://evil.example"}, False),
        (CONTROL, {"Origin": "null"}, False),
        (CONTROL, {"Origin": "http://127.0.0.1:4566"}, False),
        (CONTROL, {"Referer": "https://evil.example/"}, False),
        (CONTROL, {"Referer": "http://127.0.0.1:4566" + API}, False),
        (CONTROL, {"Sec-Fetch-Site": "cross-site"}, False),
        (CONTROL, {"Sec-Fetch-Site": "same-site"}, False),
        (CONTROL, {"Sec-Fetch-Site": "same-origin"}, False),
        (CONTROL, {"Sec-Fetch-Site": ["none", "cross-site"]}, False),
        (CONTROL, {"Sec-Fetch-Site": "none"}, True),  # typed by a person
        # A deployed API decides by itself; what only looks like its path does not.
        (API, {"Origin": "https://studio.example", "Sec-Fetch-Site": "cross-site"}, True),
        (API + "?x=1", {"Referer": "https://studio.example/"}, True),
        ("http://127.0.0.1:4566" + API, {"Origin": "https://studio.example"}, True),
        ("http://127.0.0.1:4566" + CONTROL, {"Origin": "https://evil.example"}, False),
        ("/_aws/execute-api" + CONTROL, {"Origin": "https://evil.example"}, False),
        ("/_aws/execute-api/colophon" + CONTROL, {"Origin": "https://evil.example"}, False),
        ("/?/_aws/execute-api/colophon/v1/", {"Origin": "https://evil.example"}, False),
        ("//_aws/execute-api/colophon/v1/", {"Origin": "https://evil.example"}, False),
        ("/_aws/execute-api/../v1/" + CONTROL, {"Origin": "https://evil.example"}, False),
    ],
)
def test_requests_pass_by_where_they_come_from(target: str, headers: dict[str, Any], passes: bool) -> None:
    def values(name: str) -> list[str]:
        found = {"Host": "127.0.0.1:4566", **headers}.get(name, [])
        return found if isinstance(found, list) else [found]

    assert (refusal(target, values, PORT) == "") is passes


PAGE = {"Origin": "https://evil.example", "Referer": "https://evil.example/", "Sec-Fetch-Site": "cross-site"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}  # with no-referrer


def test_a_web_page_puts_nothing_into_a_bucket(stack: Stack) -> None:
    s3, bucket = stack.client("s3"), f"test-{uuid.uuid4().hex[:8]}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="key"\r\n\r\ncode.zip\r\n'
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nprogram\r\n--edge--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    status, said = ask(stack, "POST", f"/{bucket}", form, {**headers, **PAGE})
    assert (status, b"takes no requests from web pages" in said) == (403, True)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    status, said = ask(stack, "POST", f"/{bucket}", form, headers)  # and no page's: it is what the page wanted
    assert (status, "Contents" in s3.list_objects_v2(Bucket=bucket)) == (204, True), said


def test_a_web_page_deploys_nothing(stack: Stack) -> None:
    template = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
    cloudformation = boto3.client(
        "cloudformation", endpoint_url=stack.settings.endpoint, region_name="us-east-1",  # of requests without a signature
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip

    def create(headers: dict[str, str], path: str = "/") -> tuple[int, bool]:
        name = f"test-{uuid.uuid4().hex[:8]}"
        query = {"Action": "CreateStack", "Version": "2010-05-15", "StackName": name, "TemplateBody": template}
        status, _ = ask(stack, "GET", f"{path}?{urllib.parse.urlencode(query)}", None, headers)
        made = name in [one["StackName"] for one in cloudformation.describe_stacks()["Stacks"]]
        if made:
            cloudformation.delete_stack(StackName=name)
        return status, made

    assert create(LINK) == (403, False)
    assert create(PAGE) == (403, False)
    assert create({"Host": f"evil.example:{stack.settings.port}"}) == (403, False)
    assert create({}) == (200, True)
    # Below an API's path no operation of AWS is found.
    assert create(PAGE, command_path(stack)) == (200, False)
    assert create(PAGE, "/_aws/execute-api/colophon/v1/") == (403, False)
    assert create(PAGE, "/_aws/execute-api/other/v1/") == (404, False)


def package(tmp_path: Path, kind: str) -> tuple[bytes, Path]:
    """A function's package with a program that is not ours, and the mark that it would leave."""
    mark, buffer = tmp_path / "mark", io.BytesIO()
    script = f"#!/bin/sh\ntouch {mark}\n"
    with zipfile.ZipFile(buffer, "w") as content:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = (0o755 | stat.S_IFREG) << 16
        if kind == "link":
            (tmp_path / "program").write_text(script)
            (tmp_path / "program").chmod(0o755)
            entry.external_attr = (0o777 | stat.S_IFLNK) << 16
            script = str(tmp_path / "program")
        content.writestr(entry, script)
    return buffer.getvalue(), mark


@pytest.mark.parametrize("kind", ["program", "link", "folder"])
@pytest.mark.parametrize("way", ["new function", "new code"])
def test_an_uploaded_program_is_not_run(stack: Stack, tmp_path: Path, kind: str, way: str) -> None:
    lambdas = stack.client("lambda")
    code, mark = package(tmp_path, kind)
    configuration = lambdas.get_function_configuration(FunctionName=stack.resources["CommandFunction"])
    name = f"test-{uuid.uuid4().hex[:8]}"
    source: dict[str, Any] = {"ZipFile": code}
    if kind == "folder":  # LocalStack's own way to run what lies in a folder of the machine
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "bootstrap").write_text(f"#!/bin/sh\ntouch {mark}\n")
        source = {"S3Bucket": "hot-reload", "S3Key": str(tmp_path / "code")}

    def create(code: dict[str, Any]) -> None:
        lambdas.create_function(FunctionName=name, Runtime="provided.al2023", Handler="bootstrap", Role=configuration["Role"], Code=code)

    if way == "new function":
        create(source)
    else:
        key = next(one["Key"] for one in stack.client("s3").list_objects_v2(Bucket="colophon-artifacts")["Contents"] if one["Key"].endswith(".zip"))
        create({"S3Bucket": "colophon-artifacts", "S3Key": key})
        lambdas.update_function_code(FunctionName=name, **source)
    try:
        try:
            answer = lambdas.invoke(FunctionName=name, Payload=b"{}")
            if way == "new function":
                assert answer.get("FunctionError"), answer["Payload"].read()
        except ClientError as refused:
            assert refused.response["ResponseMetadata"]["HTTPStatusCode"] >= 400
        assert not mark.exists()
        said = stack.settings.log_file.read_text()
        assert {"program": "is not one that the stack command was given", "link": "has no bootstrap", "folder": "not from folders"}[kind] in said
    finally:
        if way == "new code":  # LocalStack can't delete what it never had ready
            lambdas.delete_function(FunctionName=name)


def test_a_program_that_is_on_the_list_runs_and_no_other(tmp_path: Path) -> None:
    ours, others, list_file = tmp_path / "ours", tmp_path / "others", tmp_path / "list"
    ours.write_bytes(b"ours")
    others.write_bytes(b"others")
    with pytest.raises(allowed.NotAllowed):
        allowed.check(ours, None)
    with pytest.raises(allowed.NotAllowed):
        allowed.check(ours, list_file)
    allowed.allow(list_file, [allowed.digest_of(ours)])
    allowed.check(ours, list_file)
    with pytest.raises(allowed.NotAllowed):
        allowed.check(others, list_file)
    allowed.allow(list_file, [allowed.digest_of(others)])  # adds
    allowed.check(ours, list_file)
    allowed.check(others, list_file)
    assert stat.S_IMODE(list_file.stat().st_mode) == 0o600


def test_a_zip_is_known_by_the_program_in_it(tmp_path: Path) -> None:
    program, packed = tmp_path / "bootstrap", tmp_path / "code.zip"
    program.write_bytes(b"program")
    with zipfile.ZipFile(packed, "w") as content:
        content.write(program, "bootstrap")
    assert allowed.digest_of(packed) == allowed.digest_of(program)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as content:
        content.writestr("other", b"")
    for bad in ("other.zip", "nowhere"):
        with pytest.raises(Failed, match="is neither a program nor a zip with a bootstrap"):
            command.digest_of(tmp_path / bad)


def test_other_users_see_nothing_of_what_a_stack_keeps(stack: Stack) -> None:
    for folder in (stack.settings.folder.parent, stack.settings.folder, stack.settings.allowed_file.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    assert stat.S_IMODE(stack.settings.allowed_file.stat().st_mode) == 0o600
    (database,) = (stack.settings.folder / "engine").glob("*.sqlite")
    assert stat.S_IMODE(database.stat().st_mode) & 0o077 == 0  # LocalStack and what it starts write for their user alone
    lambdas = stack.client("lambda")
    answer = json.load(lambdas.invoke(FunctionName=stack.resources["CommandFunction"], Payload=b'{"do": "environment"}')["Payload"])
    assert str(answer["environment"]["LAMBDA_TASK_ROOT"]).startswith(str(stack.settings.folder))


def test_the_programs_to_allow_are_named_on_the_command_line() -> None:
    options = command.parser().parse_args(["run", "--bare", "--allow", "a", "b", "--allow", "c.zip", "--", "true", "-x"])
    assert options.allow == [Path("a"), Path("b"), Path("c.zip")]
    assert command.command_of(options) == ["true", "-x"]
