"""Two questions that a test may ask a local stack, below its own address; there is nothing like them on AWS.

- ``GET /_colophon/environments``: the functions' processes, to be killed: function, version, environment, pid,
  state (starting, idle, busy or ended), request (the running invocation's id).
- ``GET /_colophon/engine``: the DynamoDB engine's url and pid.
"""

from __future__ import annotations

import json
from typing import Any

from localstack.http import Response
from localstack.services.edge import ROUTER

from colophon_localstack import engine
from colophon_localstack.environments import ENVIRONMENTS


def install() -> None:
    ROUTER.add("/_colophon/environments", lambda _request, **_: answer(ENVIRONMENTS.describe()), methods=["GET"])
    ROUTER.add("/_colophon/engine", lambda _request, **_: answer(engine.address()), methods=["GET"])


def answer(content: Any) -> Response:
    return Response(json.dumps(content, indent=2) + "\n", mimetype="application/json")
