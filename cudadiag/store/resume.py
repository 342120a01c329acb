"""Whether a ledger may be gone on with: only when it was made of the same case and the same sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadiag.errors import UsageError
from cudadiag.model import Sweep
from cudadiag.store.lines import RunLine, sweep_to_json


def differences(run: RunLine, case_hash: str, sources: Mapping[str, str], sweep: Sweep) -> list[str]:
    """What of a run's beginning is no longer so, in words; empty when nothing changed."""
    changed = []
    if run.case_hash != case_hash:
        changed.append(f"the case {run.case_path or run.case_name} changed")
    if _of_the_sweep(run.sweep) != _of_the_sweep(sweep):
        changed.append("the sweep is another")
    for path in sorted(run.sources.keys() | sources.keys()):
        before, now = run.sources.get(path), sources.get(path)
        if before is None:
            changed.append(f"{path} is new among the sources")
        elif now is None:
            changed.append(f"{path} is no longer among the sources")
        elif before != now:
            changed.append(f"{path} changed")
    return changed


def _of_the_sweep(sweep: Sweep) -> dict[str, Any]:
    """What must be the same. Constants follow from the case, and older ledgers do not have them."""
    return {key: value for key, value in sweep_to_json(sweep).items() if key != "constants"}


def refuse_if_different(run: RunLine, case_hash: str, sources: Mapping[str, str], sweep: Sweep) -> None:
    """Raises UsageError naming every difference."""
    changed = differences(run, case_hash, sources, sweep)
    if changed:
        raise UsageError(
            f"cannot go on with the run {run.run_id}: " + "; ".join(changed),
            hint="probes of two different programs must not be mixed; start anew without --resume",
        )
