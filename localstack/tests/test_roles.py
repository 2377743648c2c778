"""Calls made with a role's credentials are judged by its policies, on the running stack: DynamoDB, its streams, SQS,
KMS and logs."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from colophon_localstack.stack.settings import ACCOUNT, REGION
from conftest import Stack

Statement = dict[str, Any]


class Role:
    """A role of a test's own, and clients that act as it."""

    def __init__(self, stack: Stack, statements: list[Statement]) -> None:
        self.iam, self.stack = stack.client("iam"), stack
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
        self.arn = self.iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        self.set(statements)
        self.credentials = stack.client("sts").assume_role(RoleArn=self.arn, RoleSessionName="test")["Credentials"]

    def set(self, statements: list[Statement]) -> None:
        document = {"Version": "2012-10-17", "Statement": statements or [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
        self.iam.put_role_policy(RoleName=self.name, PolicyName="test", PolicyDocument=json.dumps(document))

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.stack.settings.endpoint,
            region_name=REGION,
            aws_access_key_id=self.credentials["AccessKeyId"],
            aws_secret_access_key=self.credentials["SecretAccessKey"],
            aws_session_token=self.credentials["SessionToken"],
        )

    def delete(self) -> None:
        self.iam.delete_role_policy(RoleName=self.name, PolicyName="test")
        self.iam.delete_role(RoleName=self.name)


@pytest.fixture
def make_role(stack: Stack) -> Iterator[Callable[..., Role]]:
    made: list[Role] = []

    def make(*statements: Statement) -> Role:
        made.append(Role(stack, list(statements)))
        return made[-1]

    yield make
    for role in made:
        role.delete()


def allow(action: str | list[str], resource: str | list[str], **more: Any) -> Statement:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def is_refused(call: Callable[..., Any], **parameters: Any) -> bool:
    """Whether the call is refused for want of a right; any other failure is the test's."""
    try:
        call(**parameters)
        return False
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("AccessDenied", "AccessDeniedException"):
            raise
        assert "is not authorized to perform" in error.response["Error"]["Message"]
        return True


def item(pk: str, sk: str = "x") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def leading(pattern: str) -> Statement:
    return {"Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [pattern]}}}


def test_a_table_may_be_used_for_the_actions_that_are_allowed_and_no_others(stack: Stack, make_role: Any) -> None:
    table, arn = stack.resources["Table"], stack.outputs["TableArn"]
    dynamodb = make_role(allow(["dynamodb:PutItem", "dynamodb:Query"], arn)).client("dynamodb")
    assert not is_refused(dynamodb.put_item, TableName=table, Item=item("P#1"))
    assert is_refused(dynamodb.get_item, TableName=table, Key=item("P#1"))
    assert is_refused(dynamodb.delete_item, TableName=table, Key=item("P#1"))
    assert is_refused(dynamodb.scan, TableName=table)
    query = {"TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "P#1"}}}
    assert not is_refused(dynamodb.query, **query)
    by_index = {**query, "IndexName": "sweep", "KeyConditionExpression": "lane = :p"}
    assert is_refused(dynamodb.query, **by_index)


def test_an_index_is_a_resource_of_its_own(stack: Stack, make_role: Any) -> None:
    dynamodb = make_role(allow("dynamodb:Query", stack.outputs["TableArn"] + "/index/sweep")).client("dynamodb")
    query = {"TableName": stack.resources["Table"], "ExpressionAttributeValues": {":p": {"S": "1"}}}
    assert not is_refused(dynamodb.query, IndexName="sweep", KeyConditionExpression="lane = :p", **query)
    assert is_refused(dynamodb.query, KeyConditionExpression="pk = :p", **query)


def test_another_tables_arn_is_refused(stack: Stack, make_role: Any) -> None:
    dynamodb = make_role(allow("dynamodb:*", stack.outputs["TableArn"] + "-other")).client("dynamodb")
    assert is_refused(dynamodb.put_item, TableName=stack.resources["Table"], Item=item("P#1"))


def test_leading_keys_hold_for_items_queries_batches_and_transactions(stack: Stack, make_role: Any) -> None:
    table, arn = stack.resources["Table"], stack.outputs["TableArn"]
    dynamodb = make_role(allow("dynamodb:*", arn, **leading("P#*"))).client("dynamodb")

    def query(pk: str) -> dict[str, Any]:
        return {
            "TableName": table,
            "KeyConditionExpression": "#p = :p AND begins_with(sk, :s)",
            "ExpressionAttributeNames": {"#p": "pk"},
            "ExpressionAttributeValues": {":p": {"S": pk}, ":s": {"S": "x"}},
        }

    def batch(*pks: str) -> dict[str, Any]:
        return {"RequestItems": {table: [{"PutRequest": {"Item": item(pk)}} for pk in pks]}}

    def transaction(*pks: str) -> dict[str, Any]:
        return {"TransactItems": [{"Put": {"TableName": table, "Item": item(pk)}} for pk in pks]}

    for call, ours, others in (
        (dynamodb.put_item, {"TableName": table, "Item": item("P#1")}, {"TableName": table, "Item": item("T#1")}),
        (dynamodb.query, query("P#1"), query("T#1")),
        (dynamodb.batch_write_item, batch("P#1", "P#2"), batch("P#1", "T#2")),
        (dynamodb.transact_write_items, transaction("P#1", "P#2"), transaction("P#1", "T#2")),
    ):
        assert not is_refused(call, **ours)
        assert is_refused(call, **others)
    assert not is_refused(dynamodb.scan, TableName=table)  # no leading key: ForAllValues is true, as on AWS


def test_a_transaction_needs_the_right_for_what_it_does_to_each_item(stack: Stack, make_role: Any) -> None:
    table, arn = stack.resources["Table"], stack.outputs["TableArn"]
    role = make_role(allow("dynamodb:PutItem", arn))
    dynamodb, pk = role.client("dynamodb"), uuid.uuid4().hex
    put = {"Put": {"TableName": table, "Item": item(pk, "put")}}
    check = {"ConditionCheck": {"TableName": table, "Key": item(pk, "x"), "ConditionExpression": "attribute_not_exists(pk)"}}
    assert not is_refused(dynamodb.transact_write_items, TransactItems=[put])
    assert is_refused(dynamodb.transact_write_items, TransactItems=[put, check])
    role.set([allow(["dynamodb:PutItem", "dynamodb:ConditionCheckItem"], arn)])
    assert not is_refused(dynamodb.transact_write_items, TransactItems=[put, check])
    role.set([allow("dynamodb:TransactWriteItems", arn)])  # there is no such right on AWS
    assert is_refused(dynamodb.transact_write_items, TransactItems=[put])


def test_a_write_may_be_allowed_within_a_transaction_only(stack: Stack, make_role: Any) -> None:
    condition = {"Condition": {"StringEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"}}}
    dynamodb = make_role(allow("dynamodb:PutItem", stack.outputs["TableArn"], **condition)).client("dynamodb")
    table, pk = stack.resources["Table"], uuid.uuid4().hex
    assert is_refused(dynamodb.put_item, TableName=table, Item=item(pk))
    assert not is_refused(dynamodb.transact_write_items, TransactItems=[{"Put": {"TableName": table, "Item": item(pk)}}])


def test_an_explicit_deny_ends_it(stack: Stack, make_role: Any) -> None:
    table, arn = stack.resources["Table"], stack.outputs["TableArn"]
    deny = {"Effect": "Deny", "Action": "dynamodb:DeleteItem", "Resource": "*"}
    dynamodb = make_role(allow("dynamodb:*", arn), deny).client("dynamodb")
    assert not is_refused(dynamodb.put_item, TableName=table, Item=item("P#1"))
    assert is_refused(dynamodb.delete_item, TableName=table, Key=item("P#1"))


def test_a_change_of_the_policy_counts_at_once(stack: Stack, make_role: Any) -> None:
    table = stack.resources["Table"]
    role = make_role()
    dynamodb = role.client("dynamodb")
    assert is_refused(dynamodb.put_item, TableName=table, Item=item("P#1"))
    role.set([allow("dynamodb:PutItem", stack.outputs["TableArn"])])
    assert not is_refused(dynamodb.put_item, TableName=table, Item=item("P#1"))


def test_a_role_that_is_gone_may_do_nothing(stack: Stack) -> None:
    role = Role(stack, [allow("dynamodb:*", "*")])
    dynamodb = role.client("dynamodb")
    assert not is_refused(dynamodb.scan, TableName=stack.resources["Table"])
    role.delete()
    assert is_refused(dynamodb.scan, TableName=stack.resources["Table"])


def test_a_managed_policy_counts_as_an_inline_one_does(stack: Stack, make_role: Any) -> None:
    role = make_role()
    document = {"Version": "2012-10-17", "Statement": [allow("dynamodb:Scan", stack.outputs["TableArn"])]}
    policy = stack.client("iam").create_policy(PolicyName=role.name, PolicyDocument=json.dumps(document))["Policy"]["Arn"]
    dynamodb = role.client("dynamodb")
    assert is_refused(dynamodb.scan, TableName=stack.resources["Table"])
    role.iam.attach_role_policy(RoleName=role.name, PolicyArn=policy)
    assert not is_refused(dynamodb.scan, TableName=stack.resources["Table"])
    role.iam.detach_role_policy(RoleName=role.name, PolicyArn=policy)


def test_a_stream_is_read_with_rights_on_that_stream(stack: Stack, make_role: Any) -> None:
    arn = stack.outputs["StreamArn"]
    role = make_role(allow(["dynamodb:DescribeStream", "dynamodb:GetShardIterator"], arn))
    streams = role.client("dynamodbstreams")
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    place = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"}
    iterator = streams.get_shard_iterator(**place)["ShardIterator"]
    assert is_refused(streams.get_records, ShardIterator=iterator)
    role.set([allow("dynamodb:GetRecords", arn)])
    assert not is_refused(streams.get_records, ShardIterator=iterator)
    assert is_refused(streams.get_shard_iterator, **place)
    assert is_refused(streams.list_streams)


def test_a_queue_is_used_with_rights_on_that_queue(stack: Stack, make_role: Any) -> None:
    arn, url = stack.outputs["QueueArn"].replace("-Queue-", "-DeadLetterQueue-"), stack.resources["DeadLetterQueue"]
    arn = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sqs = make_role(allow("sqs:SendMessage", arn)).client("sqs")
    assert not is_refused(sqs.send_message, QueueUrl=url, MessageBody="x")
    entries = [{"Id": "1", "MessageBody": "x"}]
    assert not is_refused(sqs.send_message_batch, QueueUrl=url, Entries=entries)
    assert is_refused(sqs.receive_message, QueueUrl=url)
    assert is_refused(sqs.purge_queue, QueueUrl=url)
    assert is_refused(sqs.send_message, QueueUrl=stack.resources["OnFailureQueue"], MessageBody="x")
    assert is_refused(sqs.get_queue_url, QueueName=url.rsplit("/", 1)[-1])
    stack.client("sqs").purge_queue(QueueUrl=url)


SEAL = {
    "StringEquals": {"kms:EncryptionContext:project": "p1"},
    "Null": {"kms:EncryptionContext:destination": "false"},
    "ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["project", "destination"]},
}


def test_one_role_may_seal_and_another_open_within_the_encryption_context(stack: Stack, make_role: Any) -> None:
    key = stack.outputs["KeyArn"]
    sealer = make_role(allow("kms:Encrypt", key, Condition=SEAL)).client("kms")
    opener = make_role(allow("kms:Decrypt", key, Condition=SEAL)).client("kms")
    context = {"project": "p1", "destination": "d1"}
    sealed = sealer.encrypt(KeyId=key, Plaintext=b"secret", EncryptionContext=context)["CiphertextBlob"]
    assert opener.decrypt(CiphertextBlob=sealed, EncryptionContext=context)["Plaintext"] == b"secret"
    assert opener.decrypt(KeyId=key.rsplit("/", 1)[-1], CiphertextBlob=sealed, EncryptionContext=context)["Plaintext"] == b"secret"
    assert is_refused(sealer.decrypt, CiphertextBlob=sealed, EncryptionContext=context)
    assert is_refused(opener.encrypt, KeyId=key, Plaintext=b"x", EncryptionContext=context)
    assert is_refused(sealer.encrypt, KeyId=key, Plaintext=b"x")
    for other in ({"project": "p2", "destination": "d1"}, {"project": "p1"}, {**context, "more": "x"}):
        assert is_refused(sealer.encrypt, KeyId=key, Plaintext=b"x", EncryptionContext=other), other
        assert is_refused(opener.decrypt, CiphertextBlob=sealed, EncryptionContext=other), other


def sealed_for(purpose: str, *names: str) -> dict[str, Any]:
    """The template's condition for what is sealed for a purpose: exactly these names in the encryption context."""
    return {
        "Null": {f"kms:EncryptionContext:{name}": "false" for name in names},
        "StringEquals": {"kms:EncryptionContext:purpose": purpose},
        "ForAllValues:StringEquals": {"kms:EncryptionContextKeys": [*names, "purpose"]},
    }


DESTINATION = {"project": "p1", "destination": "d1"}
FOR_SECRETS = {**DESTINATION, "purpose": "secret"}
FOR_HEADERS = {**DESTINATION, "purpose": "headers", "origin": "https://hooks.example.com"}
SECRETS_AND_HEADERS = (
    sealed_for("secret", "project", "destination"),
    sealed_for("headers", "project", "destination", "origin"),
)
MISFITS: list[tuple[str, dict[str, str]]] = [
    ("the context of older versions", DESTINATION),
    ("an unknown purpose", {**DESTINATION, "purpose": "other"}),
    ("a secret with an origin", {**FOR_SECRETS, "origin": "https://hooks.example.com"}),
    ("headers without an origin", {**DESTINATION, "purpose": "headers"}),
    ("a secret of no destination", {"project": "p1", "purpose": "secret"}),
    ("headers of no project", {"destination": "d1", "purpose": "headers", "origin": "https://hooks.example.com"}),
    ("a name too many", {**FOR_HEADERS, "more": "x"}),
]


def test_secrets_and_headers_are_sealed_and_opened_each_in_the_context_of_its_purpose(stack: Stack, make_role: Any) -> None:
    key = stack.outputs["KeyArn"]
    sealer = make_role(*(allow("kms:Encrypt", key, Condition=one) for one in SECRETS_AND_HEADERS)).client("kms")
    opener = make_role(*(allow("kms:Decrypt", key, Condition=one) for one in SECRETS_AND_HEADERS)).client("kms")
    for context in (FOR_SECRETS, FOR_HEADERS):
        sealed = sealer.encrypt(KeyId=key, Plaintext=b"value", EncryptionContext=context)["CiphertextBlob"]
        assert opener.decrypt(KeyId=key, CiphertextBlob=sealed, EncryptionContext=context)["Plaintext"] == b"value"
        assert is_refused(sealer.decrypt, CiphertextBlob=sealed, EncryptionContext=context)
        assert is_refused(opener.encrypt, KeyId=key, Plaintext=b"x", EncryptionContext=context)


@pytest.mark.parametrize("context", [row[1] for row in MISFITS], ids=[row[0] for row in MISFITS])
def test_a_context_of_no_purpose_is_refused(stack: Stack, make_role: Any, context: dict[str, str]) -> None:
    key, kms = stack.outputs["KeyArn"], stack.client("kms")
    role = make_role(*(allow(["kms:Encrypt", "kms:Decrypt"], key, Condition=one) for one in SECRETS_AND_HEADERS)).client("kms")
    sealed = kms.encrypt(KeyId=key, Plaintext=b"value", EncryptionContext=context)["CiphertextBlob"]
    assert is_refused(role.encrypt, KeyId=key, Plaintext=b"x", EncryptionContext=context)
    assert is_refused(role.decrypt, KeyId=key, CiphertextBlob=sealed, EncryptionContext=context)


@pytest.mark.parametrize(
    ("sealed_under", "opened_under"),
    [
        (DESTINATION, {**DESTINATION, "project": "p2"}),
        (DESTINATION, FOR_SECRETS),
        (FOR_SECRETS, DESTINATION),
        (FOR_SECRETS, {**FOR_SECRETS, "destination": "d2"}),
        (FOR_SECRETS, FOR_HEADERS),
        (FOR_HEADERS, {**FOR_HEADERS, "purpose": "secret"}),
        (FOR_HEADERS, {**FOR_HEADERS, "origin": "https://hooks.example.com:8443"}),
        (FOR_HEADERS, {**FOR_HEADERS, "origin": "https://elsewhere.example.com"}),
        (FOR_HEADERS, {name: value for name, value in FOR_HEADERS.items() if name != "origin"}),
    ],
    ids=["project", "older to newer", "newer to older", "destination", "secret as headers", "headers as secret", "port", "host", "no origin"],
)
def test_the_sealed_value_opens_in_its_own_context_only(
    stack: Stack, sealed_under: dict[str, str], opened_under: dict[str, str]
) -> None:
    kms, key = stack.client("kms"), stack.outputs["KeyArn"]
    sealed = kms.encrypt(KeyId=key, Plaintext=b"secret", EncryptionContext=sealed_under)["CiphertextBlob"]
    assert kms.decrypt(CiphertextBlob=sealed, EncryptionContext=sealed_under)["Plaintext"] == b"secret"
    with pytest.raises(kms.exceptions.InvalidCiphertextException):
        kms.decrypt(CiphertextBlob=sealed, EncryptionContext=opened_under)


LEAVE_SETTINGS_ALONE = {"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["url", "secret", "seal"]}}


def test_attributes_that_a_policy_denies_are_refused_in_single_writes_and_in_each_of_a_transaction(
    stack: Stack, make_role: Any
) -> None:
    table, arn = stack.resources["Table"], stack.outputs["TableArn"]
    deny = {"Effect": "Deny", "Action": "dynamodb:UpdateItem", "Resource": arn, "Condition": LEAVE_SETTINGS_ALONE}
    dynamodb = make_role(allow("dynamodb:*", arn), deny).client("dynamodb")
    value = {":v": {"S": "https://elsewhere.example.com"}}

    def update(expression: str, **more: Any) -> dict[str, Any]:
        return {"TableName": table, "Key": item("P#1"), "UpdateExpression": expression, "ExpressionAttributeValues": value, **more}

    free = update("SET note = :v")
    denied = [
        update("SET url = :v"),
        update("SET note = :v, #u = :v", ExpressionAttributeNames={"#u": "url"}),
        update("SET note = :v REMOVE secret"),
        update("SET note = :v", ConditionExpression="attribute_not_exists(#u)", ExpressionAttributeNames={"#u": "url"}),
        update("SET #s.headers = :v", ExpressionAttributeNames={"#s": "seal"}),
    ]
    assert not is_refused(dynamodb.update_item, **free)
    assert not is_refused(dynamodb.transact_write_items, TransactItems=[{"Update": {**free, "Key": item("P#2")}}])
    for one in denied:
        assert is_refused(dynamodb.update_item, **one), one
        assert is_refused(dynamodb.transact_write_items, TransactItems=[{"Update": {**free, "Key": item("P#2")}}, {"Update": one}]), one
    put = {"TableName": table, "Item": {**item("P#3"), "url": {"S": "x"}}}  # the Deny is of another action
    assert not is_refused(dynamodb.transact_write_items, TransactItems=[{"Put": put}, {"Update": free}])


def test_the_keys_policy_has_a_say(stack: Stack, make_role: Any) -> None:
    kms = stack.client("kms")
    granted = make_role()
    left_to_iam = make_role(allow("kms:*", "*"))

    def key(*statements: Statement) -> str:
        document = {"Version": "2012-10-17", "Statement": [{"Resource": "*", **one} for one in statements]}
        return str(kms.create_key(Policy=json.dumps(document))["KeyMetadata"]["Arn"])

    account = {"Effect": "Allow", "Action": "kms:*", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}}
    by_name = {"Effect": "Allow", "Action": "kms:Encrypt", "Principal": {"AWS": granted.arn}}
    refuses = {"Effect": "Deny", "Action": "kms:Encrypt", "Principal": "*"}

    def may(role: Role, key: str) -> bool:
        return not is_refused(role.client("kms").encrypt, KeyId=key, Plaintext=b"x")

    assert may(left_to_iam, key(account))
    assert not may(granted, key(account))
    assert may(granted, key(by_name))
    assert not may(left_to_iam, key(by_name))
    assert not may(left_to_iam, key(account, refuses))
    assert not may(granted, key(by_name, refuses))


def test_logs_are_written_with_rights_on_the_group(stack: Stack, make_role: Any) -> None:
    group = f"/colophon/{stack.state['stack']}/command"
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*"
    logs = make_role(allow(["logs:CreateLogStream", "logs:PutLogEvents"], arn)).client("logs")
    stream, event = uuid.uuid4().hex, {"timestamp": int(time.time() * 1000), "message": "x"}
    assert not is_refused(logs.create_log_stream, logGroupName=group, logStreamName=stream)
    assert not is_refused(logs.put_log_events, logGroupName=group, logStreamName=stream, logEvents=[event])
    assert is_refused(logs.create_log_group, logGroupName="/another")
    assert is_refused(logs.create_log_stream, logGroupName="/another", logStreamName=stream)


def test_callers_without_a_role_are_not_judged(stack: Stack) -> None:
    assert not is_refused(stack.client("dynamodb").scan, TableName=stack.resources["Table"])
