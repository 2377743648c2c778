"""IAM's decisions, a row each, from AWS's documented rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from colophon_localstack import policy
from colophon_localstack.policy import Decision, Request, decide, principals, statements_of

TABLE = "arn:aws:dynamodb:eu-west-1:000000000000:table/colophon-content"

YES, NO, DENIED = Decision.ALLOWED, Decision.NOT_ALLOWED, Decision.DENIED


def allow(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": TABLE, **more}


def deny(**more: Any) -> dict[str, Any]:
    return {**allow(**more), "Effect": "Deny"}


def put(**context: list[str]) -> Request:
    return Request("dynamodb:PutItem", TABLE, {name.replace("__", ":").lower(): values for name, values in context.items()})


def keys(*values: str) -> Request:
    return put(dynamodb__LeadingKeys=list(values))


def when(operator: str, wanted: Any, key: str = "dynamodb:LeadingKeys") -> dict[str, Any]:
    return {"Condition": {operator: {key: wanted}}}


ROWS: list[tuple[str, list[dict[str, Any]], Request, Decision]] = [
    ("nothing is allowed by itself", [], put(), NO),
    ("an exact action and resource", [allow()], put(), YES),
    ("another action", [allow(Action="dynamodb:GetItem")], put(), NO),
    ("one of several actions", [allow(Action=["dynamodb:GetItem", "dynamodb:PutItem"])], put(), YES),
    ("actions are compared without regard to case", [allow(Action="DynamoDB:putitem")], put(), YES),
    ("a wildcard in an action", [allow(Action="dynamodb:Put*")], put(), YES),
    ("a question mark is one character", [allow(Action="dynamodb:Put?tem")], put(), YES),
    ("a question mark is not none", [allow(Action="dynamodb:PutItem?")], put(), NO),
    ("another resource", [allow(Resource=TABLE + "2")], put(), NO),
    ("resources are compared with regard to case", [allow(Resource=TABLE.upper())], put(), NO),
    ("a wildcard in a resource", [allow(Resource="arn:aws:dynamodb:*:*:table/colophon-*")], put(), YES),
    ("brackets stand for themselves", [allow(Resource=TABLE.replace("content", "[a-z]ontent"))], put(), NO),
    ("an index is another resource than its table", [allow()], Request("dynamodb:PutItem", TABLE + "/index/sweep"), NO),
    ("a Deny ends it, whatever allows", [allow(), deny()], put(), DENIED),
    ("a Deny before the Allow too", [deny(), allow()], put(), DENIED),
    ("a Deny of something else does not", [allow(), deny(Action="dynamodb:DeleteItem")], put(), YES),
    ("NotAction is all others", [{"Effect": "Allow", "NotAction": "dynamodb:Scan", "Resource": "*"}], put(), YES),
    ("NotAction is not its own", [{"Effect": "Allow", "NotAction": "dynamodb:Put*", "Resource": "*"}], put(), NO),
    ("NotResource is all others", [{"Effect": "Allow", "Action": "*", "NotResource": TABLE + "2"}], put(), YES),
    ("NotResource is not its own", [{"Effect": "Allow", "Action": "*", "NotResource": TABLE}], put(), NO),
    ("Deny with NotAction", [allow(), {"Effect": "Deny", "NotAction": "dynamodb:GetItem", "Resource": "*"}], put(), DENIED),
    ("StringEquals", [allow(**when("StringEquals", "P#1"))], keys("P#1"), YES),
    ("StringEquals, another value", [allow(**when("StringEquals", "P#1"))], keys("P#2"), NO),
    ("StringEquals knows no wildcard", [allow(**when("StringEquals", "P#*"))], keys("P#1"), NO),
    ("StringEquals, one of several", [allow(**when("StringEquals", ["P#1", "P#2"]))], keys("P#2"), YES),
    ("StringEquals, key absent", [allow(**when("StringEquals", "P#1"))], put(), NO),
    ("condition keys are compared without regard to case",
     [allow(**when("StringEquals", "P#1", "DynamoDB:leadingKEYS"))], keys("P#1"), YES),
    ("StringEqualsIgnoreCase", [allow(**when("StringEqualsIgnoreCase", "p#A"))], keys("P#a"), YES),
    ("StringLike", [allow(**when("StringLike", "P#*"))], keys("P#1"), YES),
    ("StringLike, another value", [allow(**when("StringLike", "P#*"))], keys("T#1"), NO),
    ("StringNotEquals", [allow(**when("StringNotEquals", "P#1"))], keys("P#2"), YES),
    ("StringNotEquals, the value", [allow(**when("StringNotEquals", "P#1"))], keys("P#1"), NO),
    ("StringNotEquals, key absent", [allow(**when("StringNotEquals", "P#1"))], put(), YES),
    ("StringNotLike", [allow(**when("StringNotLike", "P#*"))], keys("P#2"), NO),
    ("IfExists, key absent", [allow(**when("StringEqualsIfExists", "P#1"))], put(), YES),
    ("IfExists, another value", [allow(**when("StringEqualsIfExists", "P#1"))], keys("P#2"), NO),
    ("Null true, key absent", [allow(**when("Null", "true"))], put(), YES),
    ("Null true, key there", [allow(**when("Null", "true"))], keys("P#1"), NO),
    ("Null false, key there", [allow(**when("Null", "false"))], keys("P#1"), YES),
    ("Null false, key absent", [allow(**when("Null", False))], put(), NO),
    ("ForAllValues, all match", [allow(**when("ForAllValues:StringLike", "P#*"))], keys("P#1", "P#2"), YES),
    ("ForAllValues, one does not", [allow(**when("ForAllValues:StringLike", "P#*"))], keys("P#1", "T#2"), NO),
    ("ForAllValues is true where the key is absent", [allow(**when("ForAllValues:StringLike", "P#*"))], put(), YES),
    ("ForAllValues with Null closes that hole",
     [allow(Condition={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "P#*"}, "Null": {"dynamodb:LeadingKeys": "false"}})],
     put(), NO),
    ("ForAnyValue, one matches", [allow(**when("ForAnyValue:StringLike", "P#*"))], keys("T#1", "P#2"), YES),
    ("ForAnyValue, none does", [allow(**when("ForAnyValue:StringLike", "P#*"))], keys("T#1"), NO),
    ("ForAnyValue, key absent", [allow(**when("ForAnyValue:StringLike", "P#*"))], put(), NO),
    ("ForAnyValue:StringNotEquals, one other", [allow(**when("ForAnyValue:StringNotEquals", "P#1"))], keys("P#1", "P#2"), YES),
    ("ForAllValues:StringNotLike", [allow(**when("ForAllValues:StringNotLike", "P#*"))], keys("T#1", "P#1"), NO),
    ("ForAllValues with IfExists", [allow(**when("ForAllValues:StringEqualsIfExists", "P#1"))], keys("P#2"), NO),
    ("several values without a quantifier: an Allow wants all", [allow(**when("StringEquals", "P#1"))], keys("P#1", "P#2"), NO),
    ("several values without a quantifier: a Deny wants one",
     [allow(), deny(**when("StringEquals", "P#1"))], keys("P#1", "P#2"), DENIED),
    ("all operators of a statement must hold",
     [allow(Condition={"StringLike": {"dynamodb:LeadingKeys": "P#*"}, "StringEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"}})],
     keys("P#1"), NO),
    ("an unknown operator allows nothing", [allow(**when("NumericLessThan", "5"))], keys("1"), NO),
    ("an unknown operator denies", [allow(), deny(**when("NumericLessThan", "5"))], keys("1"), DENIED),
    ("an unknown quantifier allows nothing", [allow(**when("ForSomeValues:StringEquals", "P#1"))], keys("P#1"), NO),
    ("an unknown key allows nothing, even with IfExists", [allow(**when("StringEqualsIfExists", "x", "aws:SourceVpc"))], put(), NO),
    ("an unknown key allows nothing, even with Null", [allow(**when("Null", "true", "aws:SourceVpc"))], put(), NO),
    ("an unknown key denies", [allow(), deny(**when("StringEquals", "x", "aws:SourceVpc"))], put(), DENIED),
    ("what is not understood counts behind what does not hold",
     [allow(), deny(Condition={"StringEquals": {"dynamodb:LeadingKeys": "P#9"}, "NumericEquals": {"dynamodb:LeadingKeys": "1"}})],
     keys("P#1"), DENIED),
    ("a policy variable allows nothing", [allow(Resource="arn:aws:dynamodb:*:*:table/${aws:username}")], put(), NO),
    ("a policy variable in a condition allows nothing", [allow(**when("StringEquals", "${aws:userid}"))], keys("x"), NO),
    ("ArnLike, a wildcard within a part", [allow(**when("ArnLike", "arn:aws:iam::*:role/colophon-*", "aws:PrincipalArn"))],
     put(aws__PrincipalArn=["arn:aws:iam::000000000000:role/colophon-api"]), YES),
    ("ArnLike, a wildcard does not reach over a colon", [allow(**when("ArnLike", "arn:aws:*:role/x", "aws:PrincipalArn"))],
     put(aws__PrincipalArn=["arn:aws:iam::000000000000:role/x"]), NO),
    ("Bool", [allow(**when("Bool", True, "aws:PrincipalAccount"))], put(aws__PrincipalAccount=["true"]), YES),
    ("an encryption context's value",
     [allow(**when("StringEquals", "p1", "kms:EncryptionContext:project"))],
     Request("dynamodb:PutItem", TABLE, {"kms:encryptioncontext:project": ["p1"]}), YES),
    ("exactly these keys of an encryption context",
     [allow(Condition={"ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["project", "destination"]},
                       "Null": {"kms:EncryptionContext:project": "false", "kms:EncryptionContext:destination": "false"}})],
     Request("dynamodb:PutItem", TABLE, {"kms:encryptioncontext:project": ["p"], "kms:encryptioncontext:destination": ["d"],
                                         "kms:encryptioncontextkeys": ["project", "destination"]}), YES),
    ("one key too many in an encryption context",
     [allow(**when("ForAllValues:StringEquals", ["project"], "kms:EncryptionContextKeys"))],
     Request("dynamodb:PutItem", TABLE, {"kms:encryptioncontextkeys": ["project", "extra"]}), NO),
]


@pytest.mark.parametrize(("statements", "request_", "decision"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_decision(statements: list[dict[str, Any]], request_: Request, decision: Decision) -> None:
    assert decide(statements, request_) is decision


# The same rows judge the evaluator that the template's tests use (deploy/iam).
VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "deploy/iam/testdata/vectors.json").read_text(encoding="utf-8"))
WANTED = {"allowed": {YES}, "implicit deny": {NO}, "explicit deny": {DENIED}, "not read": {NO, DENIED}}


@pytest.mark.parametrize("row", VECTORS, ids=[row["rule"] for row in VECTORS])
def test_both_evaluators_decide_alike(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "KNOWN_KEYS", policy.KNOWN_KEYS | {"aws:x", "aws:y", "aws:tagkeys", "aws:securetransport"})
    request = Request(row["action"], row["resource"], {key.lower(): values for key, values in row.get("context", {}).items()})
    statements = [statement for document in row["policies"] for statement in statements_of(json.dumps(document))]
    assert decide(statements, request) in WANTED[row["want"]]


def test_a_document_may_hold_one_statement_without_a_list() -> None:
    assert statements_of('{"Statement": {"Effect": "Allow"}}') == [{"Effect": "Allow"}]
    assert statements_of({"Statement": [{"Effect": "Deny"}]}) == [{"Effect": "Deny"}]


@pytest.mark.parametrize(
    ("principal", "names"),
    [("*", ["*"]), ({"AWS": "arn:1"}, ["arn:1"]), ({"AWS": ["a", "b"]}, ["a", "b"]), ({"Service": "lambda.amazonaws.com"}, [])],
)
def test_principals(principal: Any, names: list[str]) -> None:
    assert principals({"Principal": principal}) == names
