"""Updates of a deployed stack that do what they report, or fail.

LocalStack reports success where it has no update for a kind of resource, where its update leaves properties out (a
role's inline policies, a function's reserved concurrency), and where an update ends in an exception that looks like
"not found". Here:

- what the stack's own parameters change is changed: roles, functions, mappings, alarms, rules, log groups;
- every other change is a failure that names the resource and what to do;
- a stack whose update has failed is UPDATE_ROLLBACK_FAILED, for nothing is rolled back, and takes no further update,
  as on AWS.

A resource with a changed property that is given at its creation only (a mapping's source, a name) is replaced: the new
one is made, and the old one removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from localstack.aws import handlers
from localstack.aws.api import CommonServiceException, RequestContext
from localstack.aws.api.cloudformation import ChangeSetType, StackStatus
from localstack.services.cloudformation.engine.v2.change_set_model import ChangeSetModel, ChangeType, is_nothing
from localstack.services.cloudformation.engine.v2.change_set_model_executor import ChangeSetModelExecutor
from localstack.services.cloudformation.engine.v2.change_set_model_preproc import ChangeSetModelPreproc
from localstack.services.cloudformation.resource_provider import (
    OperationStatus,
    ProgressEvent,
    ResourceProvider,
    ResourceProviderExecutor,
    ResourceRequest,
    convert_payload,
)
from localstack.services.cloudformation.stores import get_cloudformation_store
from localstack.services.cloudformation.v2.provider import find_stack_v2

LOG = logging.getLogger(__name__)

Properties = Mapping[str, Any]
STUCK = (StackStatus.UPDATE_FAILED, StackStatus.UPDATE_ROLLBACK_FAILED)


def install() -> None:
    compare_parameters_as_text()
    see_changed_attributes()
    replace_what_can_only_be_made_anew()
    update_or_fail()
    end_failed_updates_as_failed()
    handlers.serve_custom_service_request_handlers.append(refuse_updates_after_a_failed_one)


class NotUpdated(Exception):
    """What an update would leave as it was, for a person."""


def compare_parameters_as_text() -> None:
    """To CloudFormation all parameters are text; here a number's default is a number, which no text equals."""

    def equals(preproc: ChangeSetModelPreproc, node: Any) -> Any:
        arguments = preproc.visit(node.arguments)
        return preproc._cached_apply(
            scope=node.scope, arguments_delta=arguments, resolver=lambda pair: as_text(pair[0]) == as_text(pair[1])
        )

    ChangeSetModelPreproc.visit_node_intrinsic_function_fn_equals = equals


def as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def see_changed_attributes() -> None:
    """A Fn::GetAtt that names another resource or attribute than before counts as unchanged."""
    resolve = ChangeSetModel._resolve_intrinsic_function_fn_get_att

    def resolve_get_att(model: ChangeSetModel, arguments: Any) -> Any:
        change = resolve(model, arguments)
        return arguments.change_type if change == ChangeType.UNCHANGED else change

    ChangeSetModel._resolve_intrinsic_function_fn_get_att = resolve_get_att


def replace_what_can_only_be_made_anew() -> None:
    """Whether a resource must be replaced is decided by its template alone: a value that changes because another
    resource is replaced (a table's stream) is not seen there, and one that only might have changed (by a condition)
    counts. Here the values are compared, when they are known."""
    execute = ChangeSetModelExecutor._execute_resource_change

    def execute_change(executor: ChangeSetModelExecutor, name: str, before: Any, after: Any) -> None:
        if not is_nothing(before) and is_nothing(after) and not was_made(executor, name):
            return  # its creation failed, or was never begun
        if not is_nothing(before) and not is_nothing(after) and before.resource_type == after.resource_type:
            provider = executor.resource_provider_executor.try_load_resource_provider(after.resource_type)
            given_once = names_of(provider.SCHEMA.get("createOnlyProperties")) if provider else set()
            old, new = before.properties.properties, after.properties.properties
            after.requires_replacement = any(old.get(property) != new.get(property) for property in given_once)
        execute(executor, name, before, after)

    ChangeSetModelExecutor._execute_resource_change = execute_change


def was_made(executor: ChangeSetModelExecutor, name: str) -> bool:
    return "PhysicalResourceId" in executor._before_resolved_resources.get(name, {})


def names_of(paths: Iterable[str] | None) -> set[str]:
    """A schema's properties by their names."""
    return {path.removeprefix("/properties/") for path in paths or []}


def update_or_fail() -> None:
    execute_action = ResourceProviderExecutor.execute_action

    def execute(executor: ResourceProviderExecutor, provider: ResourceProvider[Any], payload: dict[str, Any]) -> Any:
        if payload["action"] not in ("Modify", "Dynamic"):
            event = execute_action(executor, provider, payload)
            if payload["action"] == "Add" and event.status is OperationStatus.SUCCESS:
                request = request_of(executor, payload)
                try:
                    complete(request, event)
                except Exception:  # the stack will not know of what was made so far
                    request.previous_state = request.desired_state = {**request.desired_state, **event.resource_model}
                    provider.delete(request)
                    raise
            return event
        request = request_of(executor, payload)
        name, kind = request.logical_resource_id, request.resource_type
        try:
            event = update(provider, request)
        except NotImplementedError:
            return failed(f"{name} can't be changed here: LocalStack has no update for {kind}. {START_ANEW}")
        except NotUpdated as left:
            return failed(f"{name} can't be changed here: LocalStack's update of {kind} leaves {left} as it was. {START_ANEW}")
        except Exception as error:
            LOG.debug("update of %s", name, exc_info=True)
            return failed(f"{name} ({kind}) could not be updated: {error}")
        return event

    ResourceProviderExecutor.execute_action = execute


START_ANEW = "End the local stack (make down) and start it anew (make up)."


def request_of(executor: ResourceProviderExecutor, payload: Any) -> ResourceRequest[Any]:
    return convert_payload(stack_name=executor.stack_name, stack_id=executor.stack_id, payload=payload)


def failed(message: str) -> ProgressEvent[Any]:
    return ProgressEvent(status=OperationStatus.FAILED, resource_model={}, message=message)


def update(provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    if request.previous_state is None:
        raise NotUpdated("all of it, not knowing what there was,")
    known = UPDATES.get(request.resource_type)
    if known is None:
        return provider.update(request)
    properties, do = known
    if left := sorted(changed(request.previous_state, request.desired_state, provider.SCHEMA) - properties):
        raise NotUpdated(" and ".join(left))
    return do(provider, request)


def changed(before: Properties, after: Properties, schema: Properties) -> set[str]:
    """The properties that differ. What LocalStack adds to a resource's state (its ARN, its id, its name) is no change."""
    kinds = ("readOnlyProperties", "primaryIdentifier", "createOnlyProperties")
    added = {"Id", "Arn"}.union(*(names_of(schema.get(kind)) for kind in kinds))
    gone = {name for name in before if name not in after} - added
    return gone | {name for name, value in after.items() if before.get(name) != value}


# One function for a kind of resource, each with the properties that it changes.


def update_role(_provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    iam, before, after = request.aws_client_factory.iam, request.previous_state, request.desired_state
    role = before["RoleName"]
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(after["AssumeRolePolicyDocument"]))
    iam.update_role(
        RoleName=role, Description=after.get("Description", ""), MaxSessionDuration=int(after.get("MaxSessionDuration", 3600))
    )
    for policy in after.get("Policies", []):
        document = json.dumps(policy["PolicyDocument"])
        iam.put_role_policy(RoleName=role, PolicyName=policy["PolicyName"], PolicyDocument=document)
    for name in names(before.get("Policies"), "PolicyName") - names(after.get("Policies"), "PolicyName"):
        iam.delete_role_policy(RoleName=role, PolicyName=name)
    managed = set(before.get("ManagedPolicyArns", [])), set(after.get("ManagedPolicyArns", []))
    for arn in managed[1] - managed[0]:
        iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    for arn in managed[0] - managed[1]:
        iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    return done(request, "RoleName", "Arn", "RoleId")


def names(items: Iterable[Properties] | None, key: str) -> set[str]:
    return {one[key] for one in items or []}


def update_function(provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    before, after = request.previous_state, request.desired_state
    for name, value in (("Description", ""), ("Environment", {"Variables": {}}), ("MemorySize", 128), ("Timeout", 3)):
        if name in before and name not in after:  # LocalStack leaves out what is not there
            after[name] = value
    provider.update(request)
    set_reserved_concurrency(request, before["FunctionName"])
    return done(request, "FunctionName", "Arn")


def set_reserved_concurrency(request: ResourceRequest[Any], function: str) -> None:
    client, reserved = request.aws_client_factory.lambda_, request.desired_state.get("ReservedConcurrentExecutions")
    if reserved is not None:
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=int(reserved))
    elif request.previous_state and "ReservedConcurrentExecutions" in request.previous_state:
        client.delete_function_concurrency(FunctionName=function)


def update_alarm(provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    request.desired_state["AlarmName"] = request.previous_state["AlarmName"]
    return provider.create(request)  # PutMetricAlarm puts the whole of it over what there was


def update_rule(provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    events, before, after = request.aws_client_factory.events, request.previous_state, request.desired_state
    bus, _, name = before["Id"].rpartition("|")
    after["Name"] = name
    event = provider.create(request)  # PutRule and PutTargets, over what there was
    if left := names(before.get("Targets"), "Id") - names(after.get("Targets"), "Id"):
        events.remove_targets(Rule=name, Ids=sorted(left), **({"EventBusName": bus} if bus else {}))
    return event


def update_log_group(_provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    set_retention(request, request.previous_state["LogGroupName"])
    return done(request, "LogGroupName", "Arn")


def set_retention(request: ResourceRequest[Any], group: str) -> None:
    """Kept by LocalStack for those who ask; nothing is deleted for it."""
    logs, days = request.aws_client_factory.logs, request.desired_state.get("RetentionInDays")
    if days is not None:
        logs.put_retention_policy(logGroupName=group, retentionInDays=int(days))
    elif request.previous_state and "RetentionInDays" in request.previous_state:
        logs.delete_retention_policy(logGroupName=group)


def update_invoke_config(_provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    request.aws_client_factory.lambda_.put_function_event_invoke_config(**request.desired_state)
    return done(request, "Id")


def by_localstack(provider: ResourceProvider[Any], request: ResourceRequest[Any]) -> ProgressEvent[Any]:
    return provider.update(request)


def done(request: ResourceRequest[Any], *kept: str) -> ProgressEvent[Any]:
    state = {**request.desired_state, **{name: request.previous_state[name] for name in kept if name in request.previous_state}}
    return ProgressEvent(status=OperationStatus.SUCCESS, resource_model=state)


Update = Callable[[ResourceProvider[Any], ResourceRequest[Any]], ProgressEvent[Any]]

UPDATES: dict[str, tuple[set[str], Update]] = {
    "AWS::IAM::Role": (
        {"AssumeRolePolicyDocument", "Description", "ManagedPolicyArns", "MaxSessionDuration", "Policies"},
        update_role,
    ),
    "AWS::Lambda::Function": (
        {
            "Code", "Description", "Environment", "Handler", "LoggingConfig", "MemorySize", "ReservedConcurrentExecutions",
            "Role", "Runtime", "Timeout", "Architectures",
        },
        update_function,
    ),
    "AWS::Lambda::EventSourceMapping": (
        {
            "BatchSize", "BisectBatchOnFunctionError", "DestinationConfig", "Enabled", "FilterCriteria", "FunctionName",
            "FunctionResponseTypes", "MaximumBatchingWindowInSeconds", "MaximumRecordAgeInSeconds", "MaximumRetryAttempts",
            "ParallelizationFactor", "ScalingConfig", "TumblingWindowInSeconds", "EventSourceMappingArn",
        },
        by_localstack,
    ),
    "AWS::Lambda::EventInvokeConfig": (
        {"DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts"},
        update_invoke_config,
    ),
    "AWS::CloudWatch::Alarm": (
        {
            "ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions",
            "EvaluationPeriods", "ExtendedStatistic", "InsufficientDataActions", "MetricName", "Metrics", "Namespace",
            "OKActions", "Period", "Statistic", "Threshold", "TreatMissingData", "Unit",
        },
        update_alarm,
    ),
    "AWS::Events::Rule": ({"Description", "EventPattern", "ScheduleExpression", "State", "Targets"}, update_rule),
    "AWS::Logs::LogGroup": ({"RetentionInDays"}, update_log_group),
}  # fmt: skip


def complete(request: ResourceRequest[Any], event: ProgressEvent[Any]) -> None:
    """What LocalStack leaves out when it makes a resource, and an update would bring."""
    if request.resource_type == "AWS::Lambda::Function":
        set_reserved_concurrency(request, event.resource_model["FunctionName"])
    elif request.resource_type == "AWS::Logs::LogGroup":
        set_retention(request, event.resource_model["LogGroupName"])


# A failed update.


def end_failed_updates_as_failed() -> None:
    """LocalStack calls it ROLLBACK_COMPLETE, for which those who wait for an update wait on, and takes the template
    that failed for the stack's, so that the same update has "no changes" the next time. The operation UpdateStack even
    reports success."""
    execute = ChangeSetModelExecutor.execute

    def execute_and_tell(executor: ChangeSetModelExecutor) -> Any:
        change_set = executor._change_set
        is_update = change_set.stack.status == StackStatus.UPDATE_IN_PROGRESS
        result = execute(executor)
        if is_update and result.failure_message:
            change_set.stack.set_stack_status(StackStatus.UPDATE_ROLLBACK_FAILED, result.failure_message)
            if change_set.change_set_type != ChangeSetType.UPDATE:  # UpdateStack's own
                raise RuntimeError(result.failure_message)
        return result

    ChangeSetModelExecutor.execute = execute_and_tell


def refuse_updates_after_a_failed_one(_chain: Any, context: RequestContext, _response: Any) -> None:
    """A handler of LocalStack's request chain."""
    if context.operation is None or context.operation.name not in ("CreateChangeSet", "UpdateStack"):
        return
    try:
        state = get_cloudformation_store(context.account_id, context.region)
        stack = find_stack_v2(state, (context.service_request or {}).get("StackName"))
    except KeyError:  # an ARN of none
        return
    if stack is not None and stack.status in STUCK:
        raise CommonServiceException(
            "ValidationError",
            f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated. {START_ANEW}",
            sender_fault=True,
        )
