"""An update of a deployed stack does what it reports, or fails and says what it did not do: on the running LocalStack,
with small stacks of the tests' own."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from colophon_localstack.stack import deployment
from colophon_localstack.stack.settings import Failed, Settings
from conftest import Stack, eventually

Template = dict[str, Any]
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}


class Deployed:
    """A stack of a test's own, changed by change sets as `stack up` and sam do it, or by UpdateStack."""

    def __init__(self, stack: Stack, template: Template) -> None:
        self.stack, self.cloudformation = stack, stack.client("cloudformation")
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.change(template, "CREATE")
        assert self.status() == "CREATE_COMPLETE", self.reasons()

    def change(self, template: Template, kind: str = "UPDATE") -> str:
        change_set = self.cloudformation.create_change_set(
            StackName=self.name, ChangeSetName=f"c-{uuid.uuid4().hex[:8]}", ChangeSetType=kind,
            TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"],
        )["Id"]  # fmt: skip

        def is_ready() -> bool:
            description = self.cloudformation.describe_change_set(ChangeSetName=change_set)
            assert description["Status"] != "FAILED", description["StatusReason"]
            return bool(description["Status"] == "CREATE_COMPLETE")

        eventually(is_ready, 30)
        self.cloudformation.execute_change_set(ChangeSetName=change_set)
        return self.ended()

    def update(self, template: Template) -> str:
        self.cloudformation.update_stack(StackName=self.name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"])
        return self.ended()

    def ended(self) -> str:
        ends = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_FAILED", "ROLLBACK_COMPLETE")
        time.sleep(0.3)  # the worker that carries it out has begun
        eventually(lambda: self.status() in ends, 60)
        return self.status()

    def status(self) -> str:
        return str(self.cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"])

    def resource(self, logical: str) -> str:
        resources = self.cloudformation.describe_stack_resources(StackName=self.name)["StackResources"]
        return next(str(one["PhysicalResourceId"]) for one in resources if one["LogicalResourceId"] == logical)

    def outputs(self) -> dict[str, str]:
        found = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"][0].get("Outputs", [])
        return {one["OutputKey"]: one["OutputValue"] for one in found}

    def reasons(self) -> str:
        events = self.cloudformation.describe_stack_events(StackName=self.name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason") or "" for event in events)


@pytest.fixture
def deploy(stack: Stack) -> Iterator[Callable[[Template], Deployed]]:
    made: list[Deployed] = []

    def make(template: Template) -> Deployed:
        made.append(Deployed(stack, template))
        return made[-1]

    yield make
    for one in made:
        one.cloudformation.delete_stack(StackName=one.name)


def role(*policies: tuple[str, str], managed: list[str] | None = None, description: str = "") -> Template:
    return {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": TRUST,
                    "Description": description,
                    "ManagedPolicyArns": managed or [],
                    "Policies": [{"PolicyName": name, "PolicyDocument": allow(action)} for name, action in policies],
                },
            }
        }
    }


def allow(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


@pytest.mark.parametrize("way", ["change", "update"])
def test_a_roles_policies_are_updated_and_it_stays_the_same_role(stack: Stack, deploy: Any, way: str) -> None:
    iam = stack.client("iam")
    one = deploy(role(("first", "dynamodb:GetItem"), ("second", "dynamodb:PutItem")))
    name = one.resource("Role")
    before = iam.get_role(RoleName=name)["Role"]
    wide = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    assert getattr(one, way)(role(("second", "dynamodb:Scan"), ("third", "dynamodb:Query"), managed=[wide], description="new")) == "UPDATE_COMPLETE"
    after = iam.get_role(RoleName=name)["Role"]
    assert (after["RoleId"], after["Arn"]) == (before["RoleId"], before["Arn"])
    assert after["Description"] == "new"
    assert sorted(iam.list_role_policies(RoleName=name)["PolicyNames"]) == ["second", "third"]
    assert iam.get_role_policy(RoleName=name, PolicyName="second")["PolicyDocument"] == allow("dynamodb:Scan")
    assert [one["PolicyArn"] for one in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]] == [wide]
    assert one.change(role(("third", "dynamodb:Query"))) == "UPDATE_COMPLETE"
    assert iam.list_role_policies(RoleName=name)["PolicyNames"] == ["third"]
    assert iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"] == []


def function(stack: Stack, **properties: Any) -> dict[str, Any]:
    """The tests' function, from where the whole stack's deployment put it."""
    s3, bucket = stack.client("s3"), deployment.BUCKET
    key = next(one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"] if one["Key"].endswith(".zip"))
    configuration = stack.client("lambda").get_function_configuration(FunctionName=stack.resources["CommandFunction"])
    made = {
        "Runtime": configuration["Runtime"], "Handler": "bootstrap", "Role": configuration["Role"], "Timeout": 3,
        "Code": {"S3Bucket": bucket, "S3Key": key},
    }  # fmt: skip
    return {"Type": "AWS::Lambda::Function", "Properties": {**made, **properties}}


def test_a_functions_environment_and_concurrency_are_updated(stack: Stack, deploy: Any) -> None:
    lambdas = stack.client("lambda")

    def template(**properties: Any) -> Template:
        return {"Resources": {"Function": function(stack, **properties)}}

    def concurrency(name: str) -> Any:
        return lambdas.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")

    one = deploy(template(Environment={"Variables": {"TABLE": "first", "ONLY": "here"}}, ReservedConcurrentExecutions=7))
    name = one.resource("Function")
    assert concurrency(name) == 7
    assert one.change(template(Environment={"Variables": {"TABLE": "second"}}, ReservedConcurrentExecutions=3, Timeout=4)) == "UPDATE_COMPLETE"
    assert one.resource("Function") == name
    configuration = lambdas.get_function_configuration(FunctionName=name)
    assert (configuration["Environment"]["Variables"], configuration["Timeout"], concurrency(name)) == ({"TABLE": "second"}, 4, 3)
    answer = json.load(lambdas.invoke(FunctionName=name, Payload=b'{"do": "environment"}')["Payload"])
    assert answer["environment"]["TABLE"] == "second"
    assert one.change(template()) == "UPDATE_COMPLETE"
    left = lambdas.get_function_configuration(FunctionName=name).get("Environment", {}).get("Variables", {})
    assert (left, concurrency(name)) == ({}, None)


def test_a_numbers_default_equals_its_text_in_a_condition(stack: Stack, deploy: Any) -> None:
    reserved = {"Fn::If": ["Reserves", {"Ref": "Reserved"}, {"Ref": "AWS::NoValue"}]}
    one = deploy(
        {
            "Parameters": {"Reserved": {"Type": "Number", "Default": 0}},
            "Conditions": {"Reserves": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Reserved"}, "0"]}]}},
            "Resources": {"Function": function(stack, ReservedConcurrentExecutions=reserved)},
        }
    )
    lambdas, name = stack.client("lambda"), one.resource("Function")
    assert lambdas.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions") is None
    assert "FunctionError" not in lambdas.invoke(FunctionName=name, Payload=b"{}")


def table() -> dict[str, Any]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": f"colophon-test-{uuid.uuid4().hex[:8]}",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
        },
    }


def test_a_mapping_whose_source_changes_is_replaced(stack: Stack, deploy: Any) -> None:
    first, second, made = table(), table(), function(stack, Role={"Fn::GetAtt": ["Role", "Arn"]})
    reader = role(("read", "dynamodb:*"))["Resources"]

    def template(source: str, **more: Any) -> Template:
        mapping = {"FunctionName": {"Ref": "Function"}, "EventSourceArn": {"Fn::GetAtt": [source, "StreamArn"]}, "StartingPosition": "LATEST"}
        return {
            "Resources": {
                **reader, "First": first, "Second": second, "Function": made,
                "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {**mapping, **more}},
            }
        }  # fmt: skip

    def mappings() -> list[tuple[str, str, int]]:
        found = stack.client("lambda").list_event_source_mappings(FunctionName=one.resource("Function"))["EventSourceMappings"]
        return [(each["UUID"], each["EventSourceArn"].split("/")[1], each["BatchSize"]) for each in found]

    one = deploy(template("First"))
    ((before, source, _),) = mappings()
    assert source == first["Properties"]["TableName"]
    assert one.change(template("First", BatchSize=7)) == "UPDATE_COMPLETE"
    assert mappings() == [(before, source, 7)]
    assert one.change(template("Second", BatchSize=7)) == "UPDATE_COMPLETE"
    eventually(lambda: len(mappings()) == 1)
    ((after, source, size),) = mappings()
    assert (source, size) == (second["Properties"]["TableName"], 7)
    assert after != before
    second["Properties"]["TableName"] += "-again"  # the table is replaced, and the mapping for its stream
    assert one.change(template("Second", BatchSize=7)) == "UPDATE_COMPLETE"
    eventually(lambda: [source for _, source, _ in mappings()] == [second["Properties"]["TableName"]])


def test_alarms_rules_and_log_groups_are_updated(stack: Stack, deploy: Any) -> None:
    def template(threshold: int, rate: str, targets: list[str], days: int) -> Template:
        alarm = {
            "Namespace": "x", "MetricName": "y", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1,
            "ComparisonOperator": "GreaterThanThreshold", "Threshold": threshold,
        }  # fmt: skip
        rule = {"ScheduleExpression": rate, "State": "DISABLED", "Targets": [{"Id": id, "Arn": stack.outputs["QueueArn"]} for id in targets]}
        return {
            "Resources": {
                "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
                "Rule": {"Type": "AWS::Events::Rule", "Properties": rule},
                "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": days}},
            }
        }

    def found() -> tuple[Any, ...]:
        (alarm,) = stack.client("cloudwatch").describe_alarms(AlarmNames=[one.resource("Alarm")])["MetricAlarms"]
        rule, events = one.resource("Rule"), stack.client("events")
        targets = [target["Id"] for target in events.list_targets_by_rule(Rule=rule)["Targets"]]
        (group,) = stack.client("logs").describe_log_groups(logGroupNamePrefix=one.resource("Logs"))["logGroups"]
        return alarm["Threshold"], events.describe_rule(Name=rule)["ScheduleExpression"], sorted(targets), group["retentionInDays"]

    one = deploy(template(1, "rate(1 minute)", ["a", "b"], 7))
    assert found() == (1, "rate(1 minute)", ["a", "b"], 7)
    assert one.change(template(2, "rate(2 minutes)", ["b", "c"], 14)) == "UPDATE_COMPLETE"
    assert found() == (2, "rate(2 minutes)", ["b", "c"], 14)


def key(description: str) -> Template:
    return {"Resources": {"Key": {"Type": "AWS::KMS::Key", "Properties": {"Description": description, "KeyPolicy": allow("kms:*")}}}}


@pytest.mark.parametrize("way", ["change", "update"])
def test_an_update_that_localstack_lacks_fails_and_names_the_resource(deploy: Any, way: str) -> None:
    one = deploy(key("first"))
    if way == "change":
        assert one.change(key("second")) == "UPDATE_ROLLBACK_FAILED"
    else:
        one.cloudformation.update_stack(StackName=one.name, TemplateBody=json.dumps(key("second")))
        eventually(lambda: one.status() == "UPDATE_FAILED", 30)
    assert "Key can't be changed here: LocalStack has no update for AWS::KMS::Key. End the local stack" in one.reasons()
    with pytest.raises(ClientError, match="can not be updated"):  # not "no changes", as if it had been done
        getattr(one, way)(key("second"))


def test_an_update_that_would_leave_a_property_fails_and_names_it(stack: Stack, deploy: Any) -> None:
    one = deploy({"Resources": {"Function": function(stack)}})
    assert one.change({"Resources": {"Function": function(stack, Layers=["arn:aws:lambda:eu-west-1:000000000000:layer:x:1"])}}) == "UPDATE_ROLLBACK_FAILED"
    assert "Function can't be changed here: LocalStack's update of AWS::Lambda::Function leaves Layers as it was." in one.reasons()


def test_an_update_that_is_refused_fails_with_its_reason(deploy: Any) -> None:
    one = deploy(role(("first", "dynamodb:GetItem")))
    assert one.change(role(("first", "dynamodb:GetItem"), managed=["arn:aws:iam::000000000000:policy/none"])) == "UPDATE_ROLLBACK_FAILED"
    assert "Role (AWS::IAM::Role) could not be updated: An error occurred (NoSuchEntity)" in one.reasons()


def test_up_ends_with_the_reason_and_again_until_the_stack_is_started_anew(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"test-{uuid.uuid4().hex[:8]}"
    monkeypatch.setattr(deployment, "STACK_NAME", name)
    template = tmp_path / "template.yaml"
    settings = Settings(port=stack.settings.port, template=template, functions=tmp_path)
    template.write_text(json.dumps(key("first")))
    deployment.Deployment(settings).deploy()
    template.write_text(json.dumps(key("second")))
    with pytest.raises(Failed, match=r"(?s)the deployment failed.*Key \(AWS::KMS::Key\): Key can't be changed here"):
        deployment.Deployment(settings).deploy()
    with pytest.raises(Failed, match=r"an earlier deployment ended halfway.*make down.*make up"):
        deployment.Deployment(settings).deploy()
    stack.client("cloudformation").delete_stack(StackName=name)


def by_condition(**parameters: str) -> Template:
    """A table of the stack's own, or the one that is given, and what names it, by each of the functions that can."""
    own = table()
    del own["Properties"]["TableName"]
    value = {
        "Stream": {"Fn::GetAtt": ["Table", "StreamArn"]},
        "Items": {"Fn::Sub": "${Table.Arn}/index/*"},
        "Text": {"Fn::Join": ["", ["of ", {"Ref": "Table"}]]},
    }
    return {
        "Parameters": {"Given": {"Type": "String", "Default": parameters.get("given", "")}},
        "Conditions": {"MakesIt": {"Fn::Equals": [{"Ref": "Given"}, ""]}},
        "Resources": {
            "Table": {**own, "Condition": "MakesIt", "DeletionPolicy": parameters.get("policy", "Retain")},
            "Queue": {
                "Type": "AWS::SQS::Queue", "Condition": "MakesIt",
                "Properties": {"QueueName": {"Fn::Sub": "of-${Table}"}, "Tags": [{"Key": "of", "Value": {"Fn::GetAtt": ["Table", "Arn"]}}]},
            },
            **role(("read", "dynamodb:GetItem"))["Resources"],
        },
        "Outputs": {name: {"Value": {"Fn::If": ["MakesIt", made, {"Ref": "Given"}]}} for name, made in value.items()},
    }  # fmt: skip


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_a_condition_that_turns_leaves_out_what_was_made_by_it(stack: Stack, deploy: Any, policy: str) -> None:
    tables, queues = stack.client("dynamodb"), stack.client("sqs")
    one = deploy(by_condition(policy=policy))
    name, before = one.resource("Table"), one.outputs()
    arn = tables.describe_table(TableName=name)["Table"]["TableArn"]
    assert (before["Items"], before["Text"]) == (f"{arn}/index/*", f"of {name}")
    assert before["Stream"].startswith(f"{arn}/stream/")
    queue = f"of-{name}"
    assert queues.get_queue_url(QueueName=queue)

    assert one.change(by_condition(policy=policy, given="another")) == "UPDATE_COMPLETE", one.reasons()
    assert one.outputs() == dict.fromkeys(before, "another")
    assert (name in tables.list_tables()["TableNames"]) == (policy == "Retain")
    with pytest.raises(ClientError, match="NonExistentQueue"):
        queues.get_queue_url(QueueName=queue)

    assert one.change(by_condition(policy=policy)) == "UPDATE_COMPLETE", one.reasons()
    again = one.resource("Table")
    assert again != name
    assert one.outputs()["Text"] == f"of {again}"


def test_what_a_stack_takes_and_its_condition_leaves_out_is_refused(deploy: Any) -> None:
    one = deploy(by_condition())
    template = by_condition(given="another")
    template["Outputs"]["Stream"]["Value"] = {"Fn::If": ["MakesIt", "none", {"Fn::GetAtt": ["Table", "StreamArn"]}]}
    assert one.change(template) == "UPDATE_ROLLBACK_FAILED"
    assert "Unresolved resource dependencies [Table]" in one.reasons()
