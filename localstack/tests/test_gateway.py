"""What the gateway hands to a function, and whom it refuses, on the running stack."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from conftest import Stack

FORM = b"a=1&b=%20x+y&&c&a=2#\n"
PARTS = b'--edge\r\nContent-Disposition: form-data; name="f"; filename="x.md"\r\n\r\n# Caf\xc3\xa9\r\n--edge--\r\nand more'
BODIES = {
    "text": (b"# Guide\r\n\tcaf\xc3\xa9\n", "text/markdown; charset=utf-8"),
    "plain text": (b"x", "text/plain"),
    "JSON": (b'{ "a": 1.0,\n"b": "\\u00e9" }', "application/json"),
    "what is called JSON and is not": (b"{", "application/json"),
    "a form": (FORM, "application/x-www-form-urlencoded"),
    "what is called a form and is not": (b"# Guide\n", "application/x-www-form-urlencoded"),
    "parts": (PARTS, "multipart/form-data; boundary=edge"),
    "parts with a quoted boundary": (PARTS, 'multipart/form-data; charset=utf-8; boundary="edge"'),
    "parts with another boundary": (PARTS, "multipart/form-data; boundary=other"),
    "parts without a boundary": (PARTS, "multipart/form-data"),
    "what is called parts and is not": (b"# Guide\n", "multipart/form-data; boundary=edge"),
    "bytes that are no text": (bytes(range(256)), "application/octet-stream"),
    "bytes that are no text, called a form": (bytes(range(256)), "application/x-www-form-urlencoded"),
    "a service's own JSON": (b'{"TableName": "x"}', "application/x-amz-json-1.0"),
    "without a type": (b"# Guide\n", None),
    "nothing": (b"", "text/markdown"),
    "nothing, called a form": (b"", "application/x-www-form-urlencoded"),
    "nothing, called parts": (b"", "multipart/form-data; boundary=edge"),
}


def ask(stack: Stack, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """A request with exactly these headers, and those without which there is none."""
    address = urlsplit(stack.settings.endpoint)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {}, encode_chunked=True)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def command_path(stack: Stack) -> str:
    return str(urlsplit(stack.state["api"]).path) + "/command"


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH"])
@pytest.mark.parametrize("kind", BODIES)
def test_a_functions_event_holds_the_body_that_was_sent(stack: Stack, method: str, kind: str) -> None:
    body, content_type = BODIES[kind]
    status, said = ask(stack, method, command_path(stack), body, {"Content-Type": content_type} if content_type else {})
    assert status == 200, said
    event = json.loads(said)
    assert event["method"] == method
    assert base64.b64decode(event["body"] or "") == body
    assert {name.lower(): value for name, value in event["headers"].items()}.get("content-type") == content_type


def test_a_body_in_chunks_arrives_whole(stack: Stack) -> None:
    chunks = [b"a=1&", b"b=2", b"\n"]
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Transfer-Encoding": "chunked"}
    status, said = ask(stack, "PUT", command_path(stack), iter(chunks), headers)
    assert (status, base64.b64decode(json.loads(said)["body"])) == (200, b"".join(chunks))


def test_an_encoded_body_is_not_unpacked(stack: Stack) -> None:
    packed = gzip.compress(b"# Guide\n")
    status, said = ask(stack, "PUT", command_path(stack), packed, {"Content-Type": "text/markdown", "Content-Encoding": "gzip"})
    event = json.loads(said)
    assert (status, base64.b64decode(event["body"])) == (200, packed)
    assert event["headers"]["Content-Encoding"] == "gzip"
