"""Every DynamoDB, DynamoDB Streams, SQS, KMS and CloudWatch Logs call that is made with a role's credentials is
judged by that role's own policies, as deployed: those of the functions, and of the mappings' pollers and the log
writers, which act as the function's role. Open LocalStack judges nothing.

What each call needs is derived here (``permissions``): the actions, the resource's ARN and the condition keys. A
TransactWriteItems, for one, needs PutItem, UpdateItem, DeleteItem or ConditionCheckItem on each item. The decision
is ``policy``'s. For KMS the key's policy has a say too: it must allow the role, or hand the decision to IAM by
naming the account.

Callers with no role (the deployer, tests) are not judged. A role that does not exist may do nothing. Not covered:
session policies, permissions boundaries (a role with one may do nothing), service control policies, the policies
of queues and tables.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cachetools.func import ttl_cache
from localstack.aws import handlers
from localstack.aws.api import CommonServiceException, RequestContext
from localstack.aws.connect import connect_to
from localstack.services.kms.models import deserialize_ciphertext_blob, kms_stores
from localstack.services.kms.provider import KmsProvider
from localstack.utils.aws.request_context import extract_access_key_id_from_auth_header
from moto.iam.models import iam_backends
from moto.sts.models import AssumedRole, sts_backends

from colophon_localstack.policy import Decision, Request, decide, principals, statements_of

LOG = logging.getLogger(__name__)

DESCRIPTION_SECONDS = 5  # a table may be made anew under its name, with another stream

Parameters = Mapping[str, Any]


def install() -> None:
    handlers.serve_custom_service_request_handlers.append(check)


def check(_chain: Any, context: RequestContext, _response: Any) -> None:
    """A handler of LocalStack's request chain: raises the service's own refusal, or lets the request pass."""
    if context.operation is None or context.service.service_name not in PERMISSIONS:
        return
    access_key = extract_access_key_id_from_auth_header(context.request.headers)
    session = role_session(context.account_id, access_key) if access_key else None
    if session is None:
        return
    for request in permissions(context, session):
        if reason := refusal(session, request):
            LOG.warning("refused: %s may not %s on %s: %s", session.arn, request.action, request.resource, reason)
            raise refused(context, session, request)


def role_session(account_id: str, access_key: str) -> AssumedRole | None:
    """The assumed role whose temporary credentials these are."""
    backend = sts_backends[account_id]["aws"]
    found = _SESSIONS.get((account_id, access_key))
    if found is None and (found := backend.get_assumed_role_from_access_key(access_key)):
        _SESSIONS[account_id, access_key] = found  # the backend looks through a list that only grows
    return found


_SESSIONS: dict[tuple[str, str], AssumedRole] = {}


def refusal(session: AssumedRole, request: Request) -> str:
    """Why the request is refused; empty if it is not."""
    backend = iam_backends[session.account_id]["aws"]
    role = next((role for role in backend.roles.values() if role.arn == session.role_arn), None)
    if role is None:
        return "there is no such role"
    if role.permissions_boundary:
        return "permissions boundaries are not evaluated here"
    documents = [*role.policies.values(), *(policy.document for policy in role.managed_policies.values())]
    decision = decide([statement for document in documents for statement in statements_of(document)], request)
    if request.action.startswith("kms:") and request.resource != "*":
        decision = with_key_policy(decision, key_policy(request.resource), session, request)
    return "" if decision is Decision.ALLOWED else decision.value


def with_key_policy(by_role: Decision, document: str, session: AssumedRole, request: Request) -> Decision:
    """A key's policy decides with the role's: it may deny, allow the role by itself, or leave it to IAM by allowing
    the account."""
    account = {session.account_id, f"arn:aws:iam::{session.account_id}:root"}
    itself = {session.role_arn, session.arn, "*"}
    statements = statements_of(document)

    def by_key(names: set[str]) -> Decision:
        return decide([one for one in statements if names & set(principals(one))], request)

    if Decision.DENIED in (by_role, by_key(itself), by_key(account)):
        return Decision.DENIED
    if by_key(itself) is Decision.ALLOWED:
        return Decision.ALLOWED
    return by_role if by_key(account) is Decision.ALLOWED else Decision.NOT_ALLOWED


def key_policy(key_arn: str) -> str:
    _, _, _, region, account_id, resource = key_arn.split(":", 5)
    return str(kms_stores[account_id][region].keys[resource.removeprefix("key/")].policy)


def refused(context: RequestContext, session: AssumedRole, request: Request) -> CommonServiceException:
    """The refusal, in the service's words."""
    is_sqs = context.service.service_name == "sqs"
    return CommonServiceException(
        code="AccessDenied" if is_sqs else "AccessDeniedException",
        message=f"User: {session.arn} is not authorized to perform: {request.action} on resource: {request.resource} "
        f"because no identity-based policy allows the {request.action} action",
        status_code=403 if is_sqs else 400,
        sender_fault=True,
    )


# What a call needs.


def permissions(context: RequestContext, session: AssumedRole) -> Iterator[Request]:
    assert context.operation
    service = context.service.service_name
    call = Call(context, session)
    for action, resource, keys in PERMISSIONS[service](call):
        yield Request(action, resource, {**call.common_keys, **{key.lower(): list(values) for key, values in keys.items()}})


class Call:
    """What the services' rules look at."""

    def __init__(self, context: RequestContext, session: AssumedRole) -> None:
        assert context.operation
        self.operation: str = context.operation.name
        self.parameters: Parameters = context.service_request or {}
        self.account: str = context.account_id
        self.region: str = context.region
        self.common_keys = {
            "aws:principalarn": [session.role_arn],
            "aws:principalaccount": [session.account_id],
            "aws:requestedregion": [context.region],
        }

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"


Needs = Iterator[tuple[str, str, Mapping[str, Any]]]  # action, resource, condition keys with their values

TRANSACTION_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def dynamodb(call: Call) -> Needs:
    parameters, operation = call.parameters, call.operation

    def table(name: str) -> str:
        return name if name.startswith("arn:") else call.arn("dynamodb", f"table/{name}")

    def leading(name: str, *keys: Mapping[str, Any]) -> dict[str, list[str]]:
        attribute = hash_key(call.account, call.region, name.rsplit("/", 1)[-1])
        return {"dynamodb:LeadingKeys": [text(key[attribute]) for key in keys if attribute in key]}

    if items := parameters.get("TransactItems"):
        for item in items:
            for kind, part in item.items():
                keys: dict[str, Any] = leading(part["TableName"], part.get("Key") or part.get("Item") or {})
                keys["dynamodb:Attributes"] = attributes(part)
                keys["dynamodb:EnclosingOperation"] = [operation]
                yield f"dynamodb:{TRANSACTION_ACTIONS[kind]}", table(part["TableName"]), keys
    elif tables := parameters.get("RequestItems"):
        for name, part in tables.items():
            if operation == "BatchGetItem":
                touched = part["Keys"]
            else:
                requests = [next(iter(one.values())) for one in part]  # of a PutRequest or DeleteRequest
                touched = [one.get("Key") or one.get("Item") or {} for one in requests]
            yield f"dynamodb:{operation}", table(name), leading(name, *touched)
    elif name := parameters.get("TableName"):
        index = parameters.get("IndexName")
        resource = table(name) + (f"/index/{index}" if index else "")
        if key := parameters.get("Key") or parameters.get("Item"):
            yield f"dynamodb:{operation}", resource, {**leading(name, key), "dynamodb:Attributes": attributes(parameters)}
        elif operation == "Query":
            attribute = hash_key(call.account, call.region, name.rsplit("/", 1)[-1], index)
            value = queried_value(parameters, attribute)
            yield "dynamodb:Query", resource, {"dynamodb:LeadingKeys": [value]} if value is not None else {}
        else:
            yield f"dynamodb:{operation}", resource, {}
    else:
        yield f"dynamodb:{operation}", parameters.get("ResourceArn") or "*", {}


def streams(call: Call) -> Needs:
    resource = call.parameters.get("StreamArn") or "*"
    if iterator := call.parameters.get("ShardIterator"):
        try:  # dynoxide's iterators are base64 of JSON that names the table; AWS's and DynamoDB Local's begin with the ARN
            name = json.loads(base64.b64decode(iterator, validate=True))["table_name"]
            resource = stream_arn(call.account, call.region, name)
        except (binascii.Error, ValueError, KeyError):
            resource = iterator.split("|", 1)[0]
    yield f"dynamodb:{call.operation}", resource, {}


def sqs(call: Call) -> Needs:
    action = call.operation.removesuffix("Batch")
    if url := call.parameters.get("QueueUrl"):
        resource = call.arn("sqs", url.rstrip("/").rsplit("/", 1)[-1])
    else:
        resource = call.arn("sqs", call.parameters["QueueName"]) if "QueueName" in call.parameters else "*"
    yield f"sqs:{action}", resource, {}


def kms(call: Call) -> Needs:
    parameters = call.parameters
    wanted = parameters.get("KeyId")
    if wanted is None and (blob := parameters.get("CiphertextBlob")):
        try:
            wanted = deserialize_ciphertext_blob(blob).key_id
        except Exception:  # no ciphertext of this stack's: KMS itself will say so
            wanted = None
    resource = "*"
    if wanted is not None:
        try:
            key_id = KmsProvider._get_key_id_from_any_id(call.account, call.region, wanted)
            resource = kms_stores[call.account][call.region].keys[key_id].metadata["Arn"]
        except Exception:  # no such key: refused here only if the role may not ask for such a key at all
            resource = wanted if wanted.startswith("arn:") else call.arn("kms", f"key/{wanted}")
    keys: dict[str, Any] = {}
    if encryption_context := parameters.get("EncryptionContext"):
        keys = {f"kms:EncryptionContext:{name}": [value] for name, value in encryption_context.items()}
        keys["kms:EncryptionContextKeys"] = list(encryption_context)
    yield f"kms:{call.operation}", resource, keys


def logs(call: Call) -> Needs:
    group = call.parameters.get("logGroupName")
    resource = call.arn("logs", f"log-group:{group}") if group else "*"
    if group:
        stream = call.parameters.get("logStreamName")
        # CreateLogStream is a right on the group, whose ARN ends in ":*" in policies; PutLogEvents one on the stream.
        resource += f":log-stream:{stream}" if stream and call.operation == "PutLogEvents" else ":*"
    yield f"logs:{call.operation}", resource, {}


PERMISSIONS: dict[str, Callable[[Call], Needs]] = {
    "dynamodb": dynamodb,
    "dynamodbstreams": streams,
    "sqs": sqs,
    "kms": kms,
    "logs": logs,
}


# What a request on one item names attributes in. AWS's definition of dynamodb:Attributes: "a list of the attribute names
# in a request, or the attributes that are returned from a request", named and meant as the parameters AttributesToGet,
# AttributeUpdates, Expected and Item are (Amazon DynamoDB Developer Guide, "Using IAM policy conditions for fine-grained
# access control"). The expressions have taken those parameters' places. Of a path the first name counts: conditions are on
# top-level attributes.
EXPRESSIONS = ("UpdateExpression", "ConditionExpression", "ProjectionExpression", "FilterExpression")
# A document path's parts after the first, a value's placeholder, a number, a function's name.
NOT_A_NAME = re.compile(r"\.\s*[#\w]+|:\w+|\b\d+\b|\b\w+\s*\(")
KEYWORDS = frozenset({"set", "remove", "add", "delete", "and", "or", "not", "between", "in"})


def attributes(part: Parameters) -> list[str]:
    """The top-level attributes that a request on one item names, its key's among them."""
    names = part.get("ExpressionAttributeNames") or {}
    found: set[str] = {*(part.get("Key") or {}), *(part.get("Item") or {})}
    found |= {*(part.get("AttributeUpdates") or {}), *(part.get("Expected") or {}), *(part.get("AttributesToGet") or [])}
    for expression in EXPRESSIONS:
        for word in re.findall(r"#\w+|\w+", NOT_A_NAME.sub(" ", part.get(expression) or "")):
            if word.startswith("#"):
                found.add(names.get(word, word))
            elif word.lower() not in KEYWORDS:
                found.add(word)
    return sorted(found)


def queried_value(parameters: Parameters, attribute: str) -> str | None:
    """The partition key's value in a Query."""
    names = parameters.get("ExpressionAttributeNames") or {}
    values = parameters.get("ExpressionAttributeValues") or {}
    for left, right in re.findall(r"([#\w.-]+)\s*=\s*(:\w+)", parameters.get("KeyConditionExpression") or ""):
        if names.get(left, left) == attribute and right in values:
            return text(values[right])
    condition = (parameters.get("KeyConditions") or {}).get(attribute)
    return text(condition["AttributeValueList"][0]) if condition else None


def text(value: Mapping[str, Any]) -> str:
    """A DynamoDB value as a condition key's."""
    (content,) = value.values()
    return base64.b64encode(content).decode() if isinstance(content, bytes) else str(content)


@ttl_cache(maxsize=1024, ttl=DESCRIPTION_SECONDS)
def hash_key(account: str, region: str, table: str, index: str | None = None) -> str:
    description = describe_table(account, region, table)
    schema = description["KeySchema"]
    if index:
        indexes = [*description.get("GlobalSecondaryIndexes", []), *description.get("LocalSecondaryIndexes", [])]
        schema = next((one["KeySchema"] for one in indexes if one["IndexName"] == index), schema)
    return str(next(part["AttributeName"] for part in schema if part["KeyType"] == "HASH"))


@ttl_cache(maxsize=1024, ttl=DESCRIPTION_SECONDS)
def stream_arn(account: str, region: str, table: str) -> str:
    return str(describe_table(account, region, table)["LatestStreamArn"])


def describe_table(account: str, region: str, table: str) -> Mapping[str, Any]:
    client = connect_to(aws_access_key_id=account, region_name=region).dynamodb
    return client.describe_table(TableName=table)["Table"]  # type: ignore[no-any-return]
