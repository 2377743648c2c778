"""Where LocalStack finds what is here: the entry points that colophon_localstack-1.0.0.dist-info names.

LocalStack imports this module before it is configured, so everything else is imported when it is called for.
A hook's entry point must have its function's name.
"""

from __future__ import annotations

import os
from typing import Any

from localstack.runtime import hooks
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ColophonExecutorPlugin(RuntimeExecutorPlugin):
    """Chosen by LAMBDA_RUNTIME_EXECUTOR=colophon."""

    name = "colophon"

    def load(self, *_args: Any, **_kwargs: Any) -> Any:
        from colophon_localstack.executor import ProcessExecutor

        return ProcessExecutor


@hooks.on_infra_start(priority=100)  # before a service is loaded
def install_colophon() -> None:
    import atexit
    import tempfile

    from colophon_localstack import authorization, callers, conditions, endpoints, engine, gateway, mends, pollers, updates
    from colophon_localstack.environments import ENVIRONMENTS

    # Functions' code is unpacked there, where no other user of the machine can put anything. (LocalStack takes TMPDIR
    # for an old setting of its own.)
    tempfile.tempdir = os.environ.get("COLOPHON_TEMPORARY") or tempfile.tempdir
    mends.install()
    gateway.install()
    callers.install()
    conditions.install()
    updates.install()
    engine.install(on_write=pollers.WRITES.tell)
    pollers.install()
    if os.environ.get("COLOPHON_CHECK_ROLES", "1") != "0":
        authorization.install()
    endpoints.install()
    atexit.register(ENVIRONMENTS.kill_all)
