"""Brings template.yaml and the functions' binaries onto a running local stack.

The template goes there as it goes to AWS, SAM transform included; the one thing that is changed is each function's
CodeUri, which is pointed at the package that was uploaded. A function whose code alone has changed is given its new
code directly, which takes a second.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import ClientError

from colophon_localstack import allowed
from colophon_localstack.stack.settings import ACCOUNT, REGION, STACK_NAME, Failed, Settings, client

BUCKET = "colophon-artifacts"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
POLL_SECONDS = 0.25
DEPLOY_SECONDS = 180
FUNCTION_TYPE = "AWS::Serverless::Function"


@dataclass(frozen=True)
class Package:
    """A function's deployment package: one file named bootstrap, the same bytes for the same binary."""

    binary: bytes

    @functools.cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.binary).hexdigest()

    @functools.cached_property
    def content(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
            entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(entry, self.binary)
        return buffer.getvalue()


class Deployment:
    """What is to be deployed: the template, its parameters and a package for each of its functions."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        try:
            self.template: dict[str, Any] = read_template(settings.template.read_text())
        except FileNotFoundError:
            raise Failed(f"there is no template at {settings.template}.") from None
        functions = [id for id, one in self.template["Resources"].items() if one["Type"] == FUNCTION_TYPE]
        self.packages = {id: Package(self._bootstrap(id).read_bytes()) for id in functions}
        known = self.template.get("Parameters", {})
        if unknown := sorted(set(settings.parameters) - set(known)):
            raise Failed(f"{settings.template.name} has no parameter {', '.join(unknown)}.")
        defaults = {
            "Architecture": architecture(),
            "Environment": "local",
            "AllowLoopbackReceivers": "true",
            # The template's leave room in a new account of AWS; a process of this machine's counts in no account.
            "DeliverConcurrency": "200",
            "SlowDeliverConcurrency": "50",
            # Tests and demos do all that they do with one token.
            "TokenRequestBurst": "1000000",
            "TokenRequestsPerMinute": "1000000",
        }
        self.parameters = {**{name: value for name, value in defaults.items() if name in known}, **settings.parameters}

    def _bootstrap(self, function: str) -> Path:
        file = self.settings.functions / folder_of(function) / "bootstrap"
        if not file.is_file():
            raise Failed(f"{function} is not built: there is no {file}.")
        return file

    @property
    def shape(self) -> str:
        """A digest of all but the code."""
        return digest({"template": self.template, "parameters": self.parameters})

    @property
    def code(self) -> dict[str, str]:
        return {id: package.digest for id, package in self.packages.items()}

    def deploy(self) -> dict[str, Any]:
        """Makes the running stack what this is; returns the new content of stack.json."""
        allowed.allow(self.settings.allowed_file, self.code.values())
        state = self.settings.state()
        if state.get("shape") != self.shape or not self._exists():
            self._deploy_stack()
        else:
            changed = [id for id, code in self.code.items() if state.get("code", {}).get(id) != code]
            for function in changed:
                self._update_code(function, state["resources"][function])
        return self.describe()

    def describe(self) -> dict[str, Any]:
        """What tests and commands need to know of the stack."""
        settings = self.settings
        cloudformation = client("cloudformation", settings)
        stack = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
        resources = cloudformation.describe_stack_resources(StackName=STACK_NAME)["StackResources"]
        physical = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}
        state: dict[str, Any] = {
            "endpoint": settings.endpoint,
            "region": REGION,
            "account": ACCOUNT,
            "stack": STACK_NAME,
            "outputs": {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])},
            "resources": physical,
            "environments": f"{settings.endpoint}/_colophon/environments",
            "engine": f"{settings.endpoint}/_colophon/engine",
            "shape": self.shape,
            "code": self.code,
        }
        stages = [one["PhysicalResourceId"] for one in resources if one["ResourceType"] == "AWS::ApiGateway::Stage"]
        apis = [one["PhysicalResourceId"] for one in resources if one["ResourceType"] == "AWS::ApiGateway::RestApi"]
        if apis and stages:
            state["api"] = f"{settings.endpoint}/_aws/execute-api/{apis[0]}/{stages[0]}"
        return state

    def _exists(self) -> bool:
        return stack_status(client("cloudformation", self.settings)) is not None

    def _deploy_stack(self) -> None:
        s3, cloudformation = client("s3", self.settings), client("cloudformation", self.settings)
        before = stack_status(cloudformation)
        if has_failed(before):
            raise Failed(f"an earlier deployment ended halfway ({before}): make down ends the stack, make up starts it anew.")
        try:
            s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        except s3.exceptions.BucketAlreadyOwnedByYou:
            pass
        template = json.loads(json.dumps(self.template))
        uploaded: set[str] = set()
        for function, package in self.packages.items():
            key = f"{package.digest}.zip"
            if key not in uploaded:
                s3.put_object(Bucket=BUCKET, Key=key, Body=package.content)
                uploaded.add(key)
            template["Resources"][function]["Properties"]["CodeUri"] = {"Bucket": BUCKET, "Key": key}
        s3.put_object(Bucket=BUCKET, Key="template.json", Body=json.dumps(template).encode())

        is_new = before in (None, "REVIEW_IN_PROGRESS")
        change_set = cloudformation.create_change_set(
            StackName=STACK_NAME,
            ChangeSetName=f"colophon-{int(time.time() * 1000)}",
            ChangeSetType="CREATE" if is_new else "UPDATE",
            TemplateURL=f"{self.settings.endpoint}/{BUCKET}/template.json",
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in self.parameters.items()],
            Capabilities=CAPABILITIES,
        )["Id"]
        deadline = time.monotonic() + DEPLOY_SECONDS
        while True:
            description = cloudformation.describe_change_set(ChangeSetName=change_set, StackName=STACK_NAME)
            if description["Status"] == "CREATE_COMPLETE":
                break
            if description["Status"] == "FAILED":
                reason = description.get("StatusReason", "no reason given")
                if re.search(r"didn't contain changes|No updates are to be performed", reason):
                    return
                raise Failed(f"the template was refused: {reason}")
            wait(deadline, "the change set")
        cloudformation.execute_change_set(ChangeSetName=change_set, StackName=STACK_NAME)
        while True:
            status = stack_status(cloudformation)
            if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                break
            if status is None or has_failed(status):
                raise Failed(f"the deployment failed ({status}):\n{failures(cloudformation)}")
            wait(deadline, "the deployment")
        self._wait_for_mappings(deadline)

    def _update_code(self, function: str, name: str) -> None:
        lambdas = client("lambda", self.settings)
        lambdas.update_function_code(FunctionName=name, ZipFile=self.packages[function].content)
        deadline = time.monotonic() + DEPLOY_SECONDS
        while lambdas.get_function_configuration(FunctionName=name)["LastUpdateStatus"] == "InProgress":
            wait(deadline, name)

    def _wait_for_mappings(self, deadline: float) -> None:
        lambdas = client("lambda", self.settings)
        while any(
            one["State"] in ("Creating", "Enabling", "Updating")
            for one in lambdas.list_event_source_mappings()["EventSourceMappings"]
        ):
            wait(deadline, "the event source mappings")


def folder_of(function: str) -> str:
    """OutboxStreamFunction is built into outbox-stream."""
    words = re.findall(r"[A-Z][a-z0-9]*", function.removesuffix("Function"))
    return "-".join(words).lower()


def architecture() -> str:
    """This machine's, in Lambda's words: the functions run here as they are."""
    import platform

    return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"


def stack_status(cloudformation: Any) -> str | None:
    try:
        status: str = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]["StackStatus"]
        return status
    except ClientError:
        return None


def has_failed(status: str | None) -> bool:
    return status is not None and status.endswith(("_FAILED", "ROLLBACK_COMPLETE"))


def failures(cloudformation: Any) -> str:
    """The resources that failed and why, the first one first; not those that were only cancelled for it."""
    events = cloudformation.describe_stack_events(StackName=STACK_NAME)["StackEvents"]
    lines = [
        f"  {event['LogicalResourceId']} ({event['ResourceType']}): {event.get('ResourceStatusReason', 'no reason given')}"
        for event in reversed(events)
        if event["ResourceStatus"].endswith("_FAILED")
        and event["ResourceType"] != "AWS::CloudFormation::Stack"
        and "cancelled" not in event.get("ResourceStatusReason", "")
    ]
    return "\n".join(dict.fromkeys(lines)) or "  (the stack's events name no failed resource)"


def wait(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise Failed(f"{what} did not come to an end within {DEPLOY_SECONDS} s.")
    time.sleep(POLL_SECONDS)


def digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# CloudFormation's short forms (!Sub …) in YAML.


class _Loader(yaml.SafeLoader):
    """Without dates: CloudFormation reads 2012-10-17 as the text it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _intrinsic(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)  # type: ignore[no-untyped-call]


def read_template(text: str) -> dict[str, Any]:
    """A CloudFormation template in YAML, its short forms written out."""
    template: dict[str, Any] = yaml.load(text, Loader=_Loader)
    return template
