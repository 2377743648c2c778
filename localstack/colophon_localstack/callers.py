"""Whose requests the gateway takes: programs of this machine, not web pages that a browser here has open.

Open LocalStack judges no caller, so a page could have the browser put a package into a bucket (a form), and deploy it
(a link). A request is refused that

- names another host than loopback with this stack's port: a name of somebody else's that resolves to this machine;
- a browser sends for a page: it has an Origin, a Referer, or a Sec-Fetch-Site other than "none" (an address that a
  person typed). Only below a deployed API's own path pages may ask; what they may do there is the API's to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from localstack.runtime.server import twisted
from twisted.python.components import proxyForInterface
from twisted.web.resource import IResource

API_PATH = re.compile(r"/_aws/execute-api/[A-Za-z0-9]+/[A-Za-z0-9_-]+/")

Header = Callable[[str], "list[str]"]  # a header's values, by its name


def refusal(target: str, header: Header, port: int) -> str:
    """Why a request is refused; empty if it is not. The target is the request line's."""
    if [host.lower() for host in header("Host")] not in [[f"{host}:{port}"] for host in ("127.0.0.1", "localhost", "[::1]")]:
        return f"This is a local stack: it answers as 127.0.0.1:{port} or localhost:{port} alone."
    path = target if target.startswith("/") else urlsplit(target).path
    if API_PATH.match(path.split("?", 1)[0]):
        return ""
    if header("Origin") or header("Referer") or header("Sec-Fetch-Site") not in ([], ["none"]):
        return "This is a local stack: it takes no requests from web pages, except for a deployed API."
    return ""


class Guarded(proxyForInterface(IResource)):  # type: ignore[misc]
    """In front of everything that listens on the stack's port, WebSockets included."""

    isLeaf = True

    def render(self, request: Any) -> Any:
        def header(name: str) -> list[str]:
            return [value.decode("latin-1").strip() for value in request.requestHeaders.getRawHeaders(name.encode(), [])]

        if reason := refusal(request.uri.decode("latin-1"), header, request.getHost().port):
            request.setResponseCode(403)
            request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
            return reason.encode() + b"\n"
        return self.original.render(request)


def install() -> None:
    make = twisted.TwistedGateway

    def gateway(*arguments: Any, **options: Any) -> Any:
        site = make(*arguments, **options)
        site.resource = Guarded(site.resource)
        return site

    twisted.TwistedGateway = gateway
