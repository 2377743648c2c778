"""What LocalStack 4.14.0 does otherwise than AWS, or wrongly, and Colophon stumbles over. Each function mends one
thing and says what happens without it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
from localstack import config
from localstack.aws.connect import connect_to
from localstack.runtime.server import twisted
from localstack.services import stores
from localstack.services.lambda_.invocation import version_manager
from localstack.services.lambda_.invocation.assignment import AssignmentException, AssignmentService
from localstack.services.lambda_.invocation.execution_environment import ExecutionEnvironment, InvalidStatusException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InitializationType, InvocationResult
from localstack.services.lambda_.invocation.logs import QUEUE_SHUTDOWN, LOG, LogHandler, LogItem
from localstack.services.sqs.provider import QueueUpdateWorker
from localstack.utils.aws.client_types import ServicePrincipal
from localstack.utils.scheduler import Scheduler
from localstack.utils.threads import start_thread

QUEUE_UPDATE_SECONDS = 0.1


def install() -> None:
    listen_where_configured()
    reserve_environments_one_by_one()
    log_to_the_configured_group()
    keep_visibility_to_the_tenth_of_a_second()
    look_up_regions_once()
    if os.environ.get("COLOPHON_METRICS") != "1":
        leave_out_metrics()


def listen_where_configured() -> None:
    """The gateway ignores the host of GATEWAY_LISTEN and would listen on all addresses of the machine."""
    tcp4 = twisted.endpoints.TCP4ServerEndpoint
    hosts = {listen.port: listen.host for listen in config.GATEWAY_LISTEN}

    def endpoint(reactor: Any, port: int) -> Any:
        return tcp4(reactor, port, interface=hosts[port])

    twisted.endpoints = SimpleNamespace(
        TCP4ServerEndpoint=endpoint, TCP6ServerEndpoint=twisted.endpoints.TCP6ServerEndpoint
    )


def reserve_environments_one_by_one() -> None:
    """Invocations that begin together walk a dict that others change, and fight for an environment that one of
    them has started: "dictionary changed size during iteration", "can only be reserved if ready"."""

    def reserve(environments: dict[str, ExecutionEnvironment], kind: InitializationType) -> ExecutionEnvironment | None:
        for environment in list(environments.values()):
            if environment.initialization_type == kind:
                with contextlib.suppress(InvalidStatusException):
                    environment.reserve()
                    return environment
        return None

    @contextlib.contextmanager
    def get_environment(
        service: AssignmentService,
        version_manager_id: str,
        function_version: FunctionVersion,
        provisioning_type: InitializationType,
    ) -> Iterator[ExecutionEnvironment]:
        environments = service.environments[version_manager_id]
        environment = reserve(environments, provisioning_type)
        if environment is None:
            if provisioning_type != InitializationType.on_demand:
                raise AssignmentException("No provisioned concurrency environment available despite lease.")
            environment = service.start_environment(version_manager_id, function_version)
            environment.reserve()  # before another can see it
            environments[environment.id] = environment
        try:
            yield environment
        except Exception:
            service.stop_environment(environment)
            raise
        with contextlib.suppress(InvalidStatusException):  # stopped meanwhile: the executor ends after its invocation
            environment.release()

    AssignmentService.get_environment = get_environment


def log_to_the_configured_group() -> None:
    """A function's LoggingConfig.LogGroup is kept but not used; where the group has no stream yet the group is
    created, which a role that names one group's streams may not do, and the logs are then lost; and an invocation
    that has nothing to say is reported as a fault."""
    default_name = ExecutionEnvironment.get_log_group_name

    def get_log_group_name(environment: ExecutionEnvironment) -> str:
        configured = (environment.function_version.config.logging_config or {}).get("LogGroup")
        return str(configured or default_name(environment))

    def run_log_loop(handler: LogHandler, *_args: Any, **_kwargs: Any) -> None:
        client = connect_to.with_assumed_role(
            region_name=handler.region, role_arn=handler.role_arn, service_principal=ServicePrincipal.lambda_
        ).logs
        made: set[tuple[str, str]] = set()
        while (item := handler.log_queue.get()) is not QUEUE_SHUTDOWN:
            try:
                if (item.log_group, item.log_stream) not in made:
                    make_stream(client, item)
                    made.add((item.log_group, item.log_stream))
                now = int(time.time() * 1000)
                lines = [line for line in item.logs.split("\n") if line]
                client.put_log_events(
                    logGroupName=item.log_group,
                    logStreamName=item.log_stream,
                    logEvents=[{"timestamp": now, "message": line + "\n"} for line in lines],
                )
            except Exception as error:
                LOG.warning("the logs of an invocation could not be written to %s: %s", item.log_group, error)

    def make_stream(client: Any, item: LogItem) -> None:
        try:
            client.create_log_stream(logGroupName=item.log_group, logStreamName=item.log_stream)
        except client.exceptions.ResourceAlreadyExistsException:
            pass
        except client.exceptions.ResourceNotFoundException:  # no such group: Lambda makes it, if the role may
            client.create_log_group(logGroupName=item.log_group)
            client.create_log_stream(logGroupName=item.log_group, logStreamName=item.log_stream)

    store_logs = version_manager.LambdaVersionManager.store_logs

    def store_what_there_is(
        manager: version_manager.LambdaVersionManager, invocation_result: InvocationResult, execution_env: Any
    ) -> None:
        if invocation_result.logs:
            store_logs(manager, invocation_result, execution_env)

    version_manager.LambdaVersionManager.store_logs = store_what_there_is
    ExecutionEnvironment.get_log_group_name = get_log_group_name
    LogHandler.run_log_loop = run_log_loop


def keep_visibility_to_the_tenth_of_a_second() -> None:
    """Messages whose visibility timeout or delay is over are looked for once a second; a wait of one second took up
    to two."""

    def start(worker: QueueUpdateWorker) -> None:
        with worker.mutex:
            if worker.thread:
                return
            worker.scheduler = Scheduler()
            worker.scheduler.schedule(worker.do_update_all_queues, period=QUEUE_UPDATE_SECONDS)
            scheduler = worker.scheduler
            worker.thread = start_thread(lambda *_: scheduler.run(), name="sqs-queue-update-worker")

    QueueUpdateWorker.start = start


def look_up_regions_once() -> None:
    """Each service makes a new boto3 session to ask for its regions, which takes a second or two in all."""
    session = boto3.Session()

    def get_valid_regions_for_service(service_name: str) -> list[str]:
        others = (("aws-us-gov", "cloudwatch"), ("aws-cn", "cloudwatch"))
        regions = list(session.get_available_regions(service_name))
        return regions + [one for partition, name in others for one in session.get_available_regions(name, partition_name=partition)]

    stores.get_valid_regions_for_service = get_valid_regions_for_service


def leave_out_metrics() -> None:
    """Each invocation writes CloudWatch metrics into a database file, which takes about as long as all else that
    LocalStack does for it; alarms, which need the service, may be deployed nevertheless."""
    version_manager.record_cw_metric_invocation = lambda **_: None
    version_manager.record_cw_metric_error = lambda **_: None
