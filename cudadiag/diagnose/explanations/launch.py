"""Explanation by a launch the device refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.explanations.words import as_told, left_open, numbers_words, only_text, printed_words
from cudadiag.diagnose.interface import Explanation, Finding, refuted, supported, untested
from cudadiag.model import FaultKind, Outcome

REFUSED_LAUNCHES = (1, 9, 701)


class LaunchLimit(Explanation):
    """Grid, block or shared memory over the device's limit."""

    name = "launch-limit"
    title = "A launch over the device's limits (grid, block, shared memory)"
    predicts = "the launch returns 1, 9 or 701; the driver's log names the limit; unchecked, the kernel never ran"
    advice = (
        "split the grid, shrink the block, or opt in to more shared memory (cudaFuncSetAttribute), and check the launch"
    )

    def weigh(self, evidence: Evidence) -> Finding:
        found = [w for w in evidence.failing if w.kind is FaultKind.LAUNCH_LIMIT or w.outcome is Outcome.SKIPPED]
        over = over_limits(evidence.crumbs, evidence.limits)
        if found:
            said = next((w.fault.detail for w in found if w.fault and w.fault.detail), None)
            why = said or "; ".join(over) or found[0].judged.verdict.reason
            printed = [w for w in found if w.kind is FaultKind.LAUNCH_LIMIT]
            suggested = bool(printed) and only_text(evidence, found)
            why = printed_words(printed) if suggested else as_told(why, printed) if printed else why
            return supported(why, found, suggested=suggested)
        if not evidence.failing:
            return untested("nothing failed")
        if over:
            return supported("; ".join(over), evidence.failing, suggested=True)
        if unseen := left_open(evidence, *REFUSED_LAUNCHES):
            return untested(unseen, evidence.failing)
        asked = _asked(evidence.crumbs)
        fits = f"; {asked}: within the limits" if asked and evidence.limits else ""
        return refuted(f"no launch was refused: {numbers_words(evidence)}{fits}", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        why = self.weigh(evidence).why.lower()
        return next((step for pattern, step in STEPS if re.search(pattern, why)), self.advice)


STEPS = (
    (r"\b(?:of|is|equals?) 0\b|not positive|zero", "launch nothing where there is nothing to do: 0 blocks are refused"),
    (r"shared", "ask for less shared memory, or opt in to more (cudaFuncSetAttribute), and check the launch"),
    (r"threads|block", "shrink the block, and check the launch"),
    (r"grid", "split the grid, or put its long side on x (y and z take 65535 blocks), and check the launch"),
)
"""What to do, by what the driver's log or `over_limits` says."""


def over_limits(launches: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[str]:
    """What of these launches is over the device's limits, in words."""
    problems = []
    for launch in launches:
        for what, names, values in (
            ("grid", ("max_grid_dim_x", "max_grid_dim_y", "max_grid_dim_z"), launch.get("grid")),
            ("block", ("max_block_dim_x", "max_block_dim_y", "max_block_dim_z"), launch.get("block")),
        ):
            for axis, name, value in zip("xyz", names, values or (), strict=False):
                limit = limits.get(name)
                if isinstance(limit, int) and value > limit:
                    problems.append(f"{launch.get('entry')}: {what} {axis} is {value}, the limit {limit}")
        threads, most = prod(launch.get("block") or (0,)), limits.get("max_threads_per_block")
        if isinstance(most, int) and threads > most:
            problems.append(f"{launch.get('entry')}: {threads} threads a block, the limit {most}")
        shared, room = launch.get("shared") or 0, limits.get("max_shared_memory_per_block_optin")
        if isinstance(room, int) and shared > room:
            problems.append(f"{launch.get('entry')}: {shared} bytes of shared memory, the limit {room}")
    return problems


def _asked(launches: Sequence[Mapping[str, Any]]) -> str:
    if not launches:
        return ""
    launch = launches[0]
    grid, block = ("x".join(map(str, launch.get(key) or ())) for key in ("grid", "block"))
    more = f" and {len(launches) - 1} more" if len(launches) > 1 else ""
    return f"grid {grid}, block {block}, {launch.get('shared') or 0} bytes of shared memory{more}"
