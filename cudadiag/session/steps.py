"""A process that ran several shapes, taken apart into what it showed about each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harness.records import Breadcrumb, ProbeFacts


def step_facts(facts: ProbeFacts) -> Iterator[tuple[ProbeFacts, bool]]:
    """The facts of each shape the process reached, in order, and whether it was the last one reached.

    How the process ended, and what its streams and device say, belongs to the last. What a shape before it showed is
    in its own result.
    """
    results: list[Any] = [step for step in facts.result.get("steps", ()) if isinstance(step, dict)]
    reached = max(len(results), 1 + max((_step(crumb) for crumb in facts.breadcrumbs), default=-1))
    for number in range(reached):
        result = results[number] if number < len(results) else {}
        crumbs = tuple(crumb for crumb in facts.breadcrumbs if _step(crumb) == number)
        if number == reached - 1:
            merged = {**facts.result, **result, "steps": results}
            yield replace(facts, result=_with_memory_of_others(merged, results), breadcrumbs=crumbs), True
        else:
            yield (
                replace(
                    facts,
                    result={**result, "finished": True},  # else the worker would not have begun the next one
                    breadcrumbs=crumbs,
                    exit_code=0,
                    signal=None,
                    timed_out=False,
                    killed_by_us=None,
                    inner_exit=None,
                    device_records=(),
                ),
                False,
            )


def _with_memory_of_others(result: dict[str, Any], results: list[Any]) -> dict[str, Any]:
    """What was taken before the first shape belongs to others; before a later one it may be this process's own."""
    memory, first = result.get("memory"), results[0].get("memory") if results else None
    if not isinstance(memory, dict) or not isinstance(first, dict) or "free_before" not in first:
        return result
    return {**result, "memory": {**memory, "free_before": first["free_before"]}}


def _step(crumb: Breadcrumb) -> int:
    value = crumb.detail.get("step")
    return value if isinstance(value, int) else 0
