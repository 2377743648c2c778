"""How LocalStack's gateway takes requests. Each function corrects one thing and says what happens without it."""

from __future__ import annotations

from typing import Any

import rolo.request
from localstack.aws.handlers import codec
from localstack.aws.handlers import logging as request_logging
from localstack.http import Request
from localstack.http import request as http_request
from localstack.runtime.server import twisted
from rolo.serving.twisted import TwistedGateway


def install() -> None:
    keep_bodies()
    leave_forms_to_the_handlers()
    leave_encoded_bodies_to_functions()


def keep_bodies() -> None:
    """API Gateway's stand-in parses a body that is declared as a form and then hands over what was not a form:
    nothing. A POST is put together again from the form's fields, which are other bytes; and without a boundary that
    ends in an exception."""

    def body(request: Request) -> bytes:
        return b"" if request.shallow else request.get_data(cache=True, parse_form_data=False)

    # The modules that have taken the name already; those that are loaded with their service take it from the first.
    modules: tuple[Any, ...] = (rolo.request, http_request, request_logging)
    for module in modules:
        module.restore_payload = body


def leave_forms_to_the_handlers() -> None:
    """The server below parses each POST that is declared as a form, without need: a handler that wants the fields
    parses them again. A form that it can't parse is answered with 400 there, and the connection closed."""

    def gateway(*arguments: Any, **options: Any) -> TwistedGateway:
        site = TwistedGateway(*arguments, **options)
        site._parsePOSTFormSubmission = False
        return site

    twisted.TwistedGateway = gateway


def leave_encoded_bodies_to_functions() -> None:
    """A body with Content-Encoding: gzip is unpacked and the header changed. API Gateway does so only for an API with
    a minimum compression size."""
    decode = codec.ContentDecoder.__call__

    def decode_others(decoder: codec.ContentDecoder, chain: Any, context: Any, response: Any) -> None:
        if not is_of_an_api(context.request):
            decode(decoder, chain, context, response)

    codec.ContentDecoder.__call__ = decode_others


def is_of_an_api(request: Request) -> bool:
    """Whether the request is for a deployed API, in the form of its address that this stack names."""
    return bool(request.path.startswith("/_aws/execute-api/"))
