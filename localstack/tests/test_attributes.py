"""The attributes that a request on one item names (``dynamodb:Attributes``), a row each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from colophon_localstack import authorization
from colophon_localstack.authorization import Call, attributes, dynamodb

KEY = {"pk": {"S": "P#1"}, "sk": {"S": "SETTINGS"}}
URL = {"#u": "url"}

ROWS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("the key's", {"Key": KEY}, []),
    ("of a whole item", {"Item": {**KEY, "url": {"S": "x"}, "version": {"N": "1"}}}, ["url", "version"]),
    ("SET", {"Key": KEY, "UpdateExpression": "SET url = :u"}, ["url"]),
    ("several, in one clause", {"Key": KEY, "UpdateExpression": "SET url=:u,version=:v"}, ["url", "version"]),
    ("each clause, in any case", {"Key": KEY, "UpdateExpression": "set a = :a remove b ADD c :c DELETE d :d"}, ["a", "b", "c", "d"]),
    ("a placeholder is its name", {"Key": KEY, "UpdateExpression": "SET #u = :u", "ExpressionAttributeNames": URL}, ["url"]),
    ("a name that is read to be written", {"Key": KEY, "UpdateExpression": "SET a = b + :one"}, ["a", "b"]),
    ("within a function", {"Key": KEY, "UpdateExpression": "SET a = if_not_exists(url, :u)"}, ["a", "url"]),
    ("in two functions", {"Key": KEY, "UpdateExpression": "SET a = list_append(if_not_exists(b, :none), :more)"}, ["a", "b"]),
    ("of a path the first", {"Key": KEY, "UpdateExpression": "SET seal.headers = :two"}, ["seal"]),
    ("of a path of placeholders the first",
     {"Key": KEY, "UpdateExpression": "SET #s.#h = :two", "ExpressionAttributeNames": {"#s": "seal", "#h": "headers"}}, ["seal"]),
    ("of a path with an index", {"Key": KEY, "UpdateExpression": "REMOVE olderSecrets[0], olderSecrets[1].secret"}, ["olderSecrets"]),
    ("a path's blanks change nothing", {"Key": KEY, "UpdateExpression": "SET seal . headers = :two"}, ["seal"]),
    ("a value's name is no attribute's", {"Key": KEY, "UpdateExpression": "SET a = :url", "ExpressionAttributeValues": {":url": {}}}, ["a"]),
    ("a placeholder's name with a dot is one attribute",
     {"Key": KEY, "UpdateExpression": "SET #x = :x", "ExpressionAttributeNames": {"#x": "url.part"}}, ["url.part"]),
    ("an attribute named like a function", {"Key": KEY, "UpdateExpression": "SET size = :n"}, ["size"]),
    ("a condition's", {"Key": KEY, "UpdateExpression": "SET a = :a", "ConditionExpression": "version = :v"}, ["a", "version"]),
    ("a condition's, all forms",
     {"Key": KEY, "ConditionExpression": "attribute_exists(a) AND NOT (b BETWEEN :x AND :y OR c IN (:z, d)) and begins_with(e, :f) OR size(g) > :n"},
     ["a", "b", "c", "d", "e", "g"]),
    ("a condition's placeholder",
     {"Key": KEY, "ConditionExpression": "attribute_not_exists(#u)", "ExpressionAttributeNames": URL}, ["url"]),
    ("a comparison without blanks", {"Key": KEY, "ConditionExpression": "a<>:a"}, ["a"]),
    ("what a read returns", {"Key": KEY, "ProjectionExpression": "url, seal.headers, #u", "ExpressionAttributeNames": {"#u": "secret"}},
     ["seal", "secret", "url"]),
    ("parameters of before expressions",
     {"Key": KEY, "AttributeUpdates": {"a": {}}, "Expected": {"b": {}}, "AttributesToGet": ["c"]}, ["a", "b", "c"]),
]


@pytest.mark.parametrize(("part", "named"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_attributes_that_a_request_names(part: dict[str, Any], named: list[str]) -> None:
    assert attributes(part) == sorted([*named, "pk", "sk"])


def call(operation: str, **parameters: Any) -> Call:
    context = SimpleNamespace(
        operation=SimpleNamespace(name=operation), service_request=parameters, account_id="000000000000", region="eu-west-1"
    )
    return Call(context, SimpleNamespace(role_arn="arn", account_id="000000000000"))  # type: ignore[arg-type]


def test_a_transaction_is_judged_by_each_items_own_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "hash_key", lambda *_: "pk")
    update = {"TableName": "t", "Key": KEY, "UpdateExpression": "SET url = :u"}
    check = {"TableName": "t", "Key": KEY, "ConditionExpression": "attribute_exists(slot)"}
    put = {"TableName": "t", "Item": {**KEY, "secret": {"B": b"x"}}, "ConditionExpression": "attribute_not_exists(pk)"}
    delete = {"TableName": "t", "Key": KEY}
    needs = dynamodb(call("TransactWriteItems", TransactItems=[{"Update": update}, {"ConditionCheck": check}, {"Put": put}, {"Delete": delete}]))
    assert [(action, keys["dynamodb:Attributes"]) for action, _, keys in needs] == [
        ("dynamodb:UpdateItem", ["pk", "sk", "url"]),
        ("dynamodb:ConditionCheckItem", ["pk", "sk", "slot"]),
        ("dynamodb:PutItem", ["pk", "secret", "sk"]),
        ("dynamodb:DeleteItem", ["pk", "sk"]),
    ]


def test_a_single_request_is_judged_by_its_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "hash_key", lambda *_: "pk")
    needs = dynamodb(call("UpdateItem", TableName="t", Key=KEY, UpdateExpression="SET #u = :u", ExpressionAttributeNames=URL))
    assert [keys["dynamodb:Attributes"] for _, _, keys in needs] == [["pk", "sk", "url"]]
