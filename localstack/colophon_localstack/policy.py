"""The decision of IAM about one request, from the policies' own statements.

The order is IAM's: a matching Deny ends it, else a matching Allow is needed, else the answer is no. What this
module does not know (an element, an operator, a condition key, a policy variable) is never read in a request's favour: an Allow
with it does not match, a Deny with it does.

Source: AWS's "IAM JSON policy elements" reference. Of its operators the string, ARN, Bool and Null ones are here,
with ...IfExists, ForAllValues and ForAnyValue. ForAllValues is true where the key is absent, as on AWS, which is a
hole to know of: a policy closes it with a Null condition, or by not granting the action that lacks the key.
"""

from __future__ import annotations

import enum
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The condition keys that a request's context is filled with, where the request has them; lower-case, as all
# comparisons of keys are made. A key that is neither here nor under a prefix is unknown, not absent.
KNOWN_KEYS = frozenset(
    {
        "dynamodb:attributes",
        "dynamodb:leadingkeys",
        "dynamodb:enclosingoperation",
        "kms:encryptioncontextkeys",
        "kms:viaservice",  # absent from every request: nothing here calls the key for another
        "aws:principalarn",
        "aws:principalaccount",
        "aws:requestedregion",
    }
)
VERSION = "2012-10-17"  # of the policy language
ELEMENTS = frozenset({"Sid", "Effect", "Principal", "Action", "NotAction", "Resource", "NotResource", "Condition"})
KNOWN_KEY_PREFIXES = ("kms:encryptioncontext:",)


class Decision(enum.Enum):
    ALLOWED = "allowed"
    NOT_ALLOWED = "no statement allows it"
    DENIED = "a statement denies it"


@dataclass(frozen=True)
class Request:
    """One permission that a call needs. Context values are always sequences; a key that the call lacks is absent."""

    action: str  # "dynamodb:PutItem"
    resource: str  # an ARN, or "*"
    context: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lower-case keys


class Unknown(Exception):
    """Something in a statement that is not understood here."""


def statements_of(document: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The statements of a policy document, given as JSON or parsed. Of another version of the language, in which the
    same words mean other things, only what denies."""
    parsed = _parse(document) if isinstance(document, str) else document
    statements = _as_list(parsed["Statement"])
    if parsed.get("Version", VERSION) == VERSION:
        return statements
    return [statement for statement in statements if statement.get("Effect") != "Allow"]


def decide(statements: Iterable[Mapping[str, Any]], request: Request) -> Decision:
    """The decision of these statements together. A statement's Principal is the caller's business: see ``principals``."""
    allowed = False
    for statement in statements:
        if not _well_formed(statement):
            if statement.get("Effect") == "Allow":
                continue
            return Decision.DENIED
        if not _names(statement, request):
            continue
        is_deny = statement["Effect"] == "Deny"
        try:
            holds = _conditions_hold(statement.get("Condition") or {}, request.context, is_deny)
        except Unknown:
            holds = is_deny
        if holds and is_deny:
            return Decision.DENIED
        allowed |= holds
    return Decision.ALLOWED if allowed else Decision.NOT_ALLOWED


def principals(statement: Mapping[str, Any]) -> list[str]:
    """Whom a resource policy's statement is about: "*", ARNs or account ids."""
    principal = statement.get("Principal", [])
    return ["*"] if principal == "*" else _as_list(principal.get("AWS", [])) if isinstance(principal, Mapping) else []


def _well_formed(statement: Mapping[str, Any]) -> bool:
    """Whether AWS would take the statement, and it has nothing that is not read here."""
    return (
        set(statement) <= ELEMENTS
        and statement.get("Effect") in ("Allow", "Deny")
        and ("Action" in statement) != ("NotAction" in statement)
        and not ("Resource" in statement and "NotResource" in statement)
        and all(keys and all(values != [] for values in keys.values()) for keys in (statement.get("Condition") or {}).values())
    )


def _names(statement: Mapping[str, Any], request: Request) -> bool:
    """Whether the statement is about this action and this resource."""
    try:
        if "Action" in statement:
            action = _matches_any(statement["Action"], request.action, ignore_case=True)
        else:
            action = not _matches_any(statement["NotAction"], request.action, ignore_case=True)
        if "Resource" in statement:
            resource = _matches_any(statement["Resource"], request.resource)
        elif "NotResource" in statement:
            resource = not _matches_any(statement["NotResource"], request.resource)
        else:
            resource = "Principal" in statement or "NotPrincipal" in statement  # a resource policy may leave it out
        return action and resource
    except (Unknown, KeyError):
        return statement.get("Effect") == "Deny"


def _conditions_hold(conditions: Mapping[str, Any], context: Mapping[str, Sequence[str]], is_deny: bool) -> bool:
    """All operators and all of their keys must hold. Unknown ones are looked at even after one that does not hold:
    a statement that is not understood is not understood."""
    return all(
        [
            _holds(operator, key.lower(), [_text(value) for value in _as_list(wanted)], context, is_deny)
            for operator, keys in conditions.items()
            for key, wanted in keys.items()
        ]
    )


def _holds(operator: str, key: str, wanted: list[str], context: Mapping[str, Sequence[str]], is_deny: bool) -> bool:
    if key not in KNOWN_KEYS and not key.startswith(KNOWN_KEY_PREFIXES):
        raise Unknown(key)
    values = context.get(key)
    if operator == "Null":
        return _null_holds(wanted, absent=not values)  # a key without a value is no key here
    quantifier, _, name = operator.rpartition(":")
    if_exists = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    negated = name in NEGATED
    compare = OPERATORS.get(NEGATED.get(name, name))
    if compare is None or quantifier not in ("", "ForAllValues", "ForAnyValue"):
        raise Unknown(operator)

    def holds_for(value: str) -> bool:
        return any(compare(pattern, value) for pattern in wanted) != negated

    if values is None:
        return if_exists or quantifier == "ForAllValues" or (negated and quantifier == "")
    if quantifier == "ForAllValues":
        return all(map(holds_for, values))
    if quantifier == "ForAnyValue":
        return any(map(holds_for, values))
    # Several values without a quantifier are not defined: read against the request.
    if is_deny:
        return len(values) > 1 or any(map(holds_for, values))
    return bool(values) and all(map(holds_for, values))


def _null_holds(wanted: list[str], absent: bool) -> bool:
    if any(value not in ("true", "false") for value in wanted):
        raise Unknown(f"Null: {wanted}")
    return any((value == "true") == absent for value in wanted)


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda pattern, value: _plain(pattern) == value,
    "StringEqualsIgnoreCase": lambda pattern, value: _plain(pattern).lower() == value.lower(),
    "StringLike": lambda pattern, value: _matches(pattern, value),
    "ArnEquals": lambda pattern, value: _arn_matches(pattern, value),
    "ArnLike": lambda pattern, value: _arn_matches(pattern, value),
    "Bool": lambda pattern, value: _plain(pattern).lower() == value.lower(),
}
NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
}


def _matches_any(patterns: Any, value: str, ignore_case: bool = False) -> bool:
    # A list and no generator: an unknown pattern behind a matching one is still unknown.
    return any([_matches(pattern, value, ignore_case) for pattern in _as_list(patterns)])


def _matches(pattern: str, value: str, ignore_case: bool = False) -> bool:
    return _expression(pattern, ignore_case).fullmatch(value) is not None


def _arn_matches(pattern: str, value: str) -> bool:
    """Part by part: a wildcard does not reach over a colon, except in the last part, the resource."""
    patterns, values = pattern.split(":", 5), value.split(":", 5)
    return len(patterns) == len(values) == 6 and all(map(_matches, patterns, values))


@functools.lru_cache(maxsize=4096)
def _expression(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """``*`` is any run of characters, ``?`` is one; all else stands for itself."""
    _plain(pattern)
    parts = {"*": ".*", "?": "."}
    source = "".join(parts.get(character) or re.escape(character) for character in pattern)
    return re.compile(source, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _plain(pattern: str) -> str:
    if "${" in pattern:
        raise Unknown(pattern)  # a policy variable
    return pattern


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@functools.lru_cache(maxsize=1024)
def _parse(document: str) -> Mapping[str, Any]:
    parsed: Mapping[str, Any] = json.loads(document)
    return parsed
