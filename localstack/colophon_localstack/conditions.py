"""Conditions of a template at an update, as CloudFormation applies them.

LocalStack evaluates each value for the deployed stack and for the new one at once, and so what an Fn::If does not take
too: a branch that the deployed stack took may name resources that the new one leaves out, and the update is refused
("Unresolved resource dependencies"). A resource that its condition leaves out from now on stays as it is, unless another
resource happens to name it. Here:

- a branch, and the properties of a resource, are evaluated only for the stacks that take them;
- a resource that its condition leaves out is removed, or retained, as its DeletionPolicy says.

What a stack does take and its conditions leave out is refused as before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from localstack.services.cloudformation.engine.v2.change_set_model import (
    NodeCondition,
    NodeMapping,
    NodeParameter,
    NodeResource,
    Nothing,
    is_nothing,
)
from localstack.services.cloudformation.engine.v2.change_set_model_executor import ChangeSetModelExecutor
from localstack.services.cloudformation.engine.v2.change_set_model_preproc import ChangeSetModelPreproc, PreprocEntityDelta

Stacks = frozenset[str]
BOTH: Stacks = frozenset(("before", "after"))


def install() -> None:
    evaluate_for_the_stacks_that_take_it()
    take_one_branch_for_each_stack()
    remove_what_is_left_out_from_now_on()


@contextlib.contextmanager
def evaluating(preproc: ChangeSetModelPreproc, stacks: Stacks) -> Iterator[None]:
    before = evaluated(preproc)
    preproc.evaluated_stacks = stacks
    try:
        yield
    finally:
        preproc.evaluated_stacks = before


def evaluated(preproc: ChangeSetModelPreproc) -> Stacks:
    stacks: Stacks = getattr(preproc, "evaluated_stacks", BOTH)
    return stacks


def evaluate_for_the_stacks_that_take_it() -> None:
    """A value that is not there (Nothing) is not looked up, whatever function it is an argument of."""
    visit = ChangeSetModelPreproc.visit

    def visit_for_stacks(preproc: ChangeSetModelPreproc, change_set_entity: Any) -> Any:
        entity = change_set_entity  # LocalStack names the argument at times
        stacks = evaluated(preproc)
        if isinstance(entity, NodeResource):
            inner = stacks_with(preproc, entity)
        elif isinstance(entity, (NodeParameter, NodeCondition, NodeMapping)):
            inner = BOTH  # they are evaluated once, and by whoever names them first
        else:
            inner = stacks
        with evaluating(preproc, inner):
            delta = visit(preproc, entity)
        if stacks == BOTH or not isinstance(delta, PreprocEntityDelta):
            return delta
        return PreprocEntityDelta(
            before=delta.before if "before" in stacks else Nothing, after=delta.after if "after" in stacks else Nothing
        )

    resolve = ChangeSetModelPreproc._resolve_resource_condition_reference

    def resolve_for_both(preproc: ChangeSetModelPreproc, reference: Any) -> Any:
        with evaluating(preproc, BOTH):
            return resolve(preproc, reference)

    ChangeSetModelPreproc.visit = visit_for_stacks
    ChangeSetModelPreproc._resolve_resource_condition_reference = resolve_for_both


def stacks_with(preproc: ChangeSetModelPreproc, resource: NodeResource) -> Stacks:
    if is_nothing(resource.condition_reference):
        return BOTH
    condition = preproc._resolve_resource_condition_reference(resource.condition_reference)
    return frozenset(name for name in BOTH if is_nothing(holds := getattr(condition, name)) or holds)


def take_one_branch_for_each_stack() -> None:
    def visit_if(preproc: ChangeSetModelPreproc, node_intrinsic_function: Any) -> Any:
        name, *branches = node_intrinsic_function.arguments.array
        if len(branches) != 2:
            raise ValueError(f"Fn::If takes 3 arguments and not {len(branches) + 1}")
        names, result = preproc.visit(name), PreprocEntityDelta()
        takers: dict[int, set[str]] = {0: set(), 1: set()}
        for stack in evaluated(preproc):
            if not is_nothing(condition := getattr(names, stack)):
                takers[0 if getattr(preproc._resolve_condition(condition), stack) else 1].add(stack)
        for index, stacks in takers.items():
            if not stacks:
                continue
            with evaluating(preproc, frozenset(stacks)):
                delta = preproc.visit(branches[index])
            for stack in stacks:
                setattr(result, stack, getattr(delta, stack))
        return result

    ChangeSetModelPreproc.visit_node_intrinsic_function_fn_if = visit_if


def remove_what_is_left_out_from_now_on() -> None:
    def visit_all(executor: ChangeSetModelExecutor, node_resources: Any) -> None:
        for resource in node_resources.resources:
            executor.visit(resource)

    ChangeSetModelExecutor.visit_node_resources = visit_all
