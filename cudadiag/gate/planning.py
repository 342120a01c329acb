"""Shards and budgets: which of the chosen shapes are run here, and which in the time there is."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.words import shape_words

DEFAULT_PROBE_S = 2.0  # where no earlier run tells


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, from 1."""

    number: int = 1
    count: int = 1

    def has(self, key: str) -> bool:
        """Whether this shard runs what the key names. The same on every machine, whatever else there is."""
        digest = hashlib.sha256(key.encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """`2/8`. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: write 2/8 for the second of eight parts")
    return Shard(int(match[1]), int(match[2]))


def parse_budget(text: str) -> float:
    """`90s`, `5m`, `1h30m` in seconds. Raises UsageError."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = sum(float(number) * units[unit] for number, unit in parts)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text or seconds <= 0:
        raise UsageError(f"--budget {text}: write a time such as 90s, 5m or 1h30m")
    return seconds


def in_shard(run: CaseRun, shard: Shard, baseline: Baseline) -> CaseRun:
    """The run with the shapes of this shard only. All shapes of one known crash are in one shard: its fresh passes are
    counted together."""
    if shard.count == 1:
        return run
    keys: dict[int, str] = {}
    for entry in run.entries(baseline):
        for index in run.covered(entry).indices:
            keys.setdefault(index, entry.key)
    own = tuple(
        c for c in run.chosen if shard.has(keys.get(c.index) or f"{run.name}\0{shape_words(run.sweep.shape(c.index))}")
    )
    return dataclasses.replace(run, chosen=own)


def within(runs: Sequence[CaseRun], budget_s: float, slots: int = 1) -> list[CaseRun]:
    """The runs with `cut` set to what does not fit: shapes are taken most telling first over all cases, a first run of
    each case before the second of any with the same weight. At least one shape is always taken."""
    left = budget_s * max(1, slots)
    rows = [(c.weight, rank, number) for number, run in enumerate(runs) for rank, c in enumerate(run.chosen)]
    taken: list[set[int]] = [set() for _ in runs]
    for _, rank, number in sorted(rows, key=lambda row: (-row[0], row[1], row[2])):
        choice = runs[number].chosen[rank]
        cost = choice.cost_s * runs[number].repeat
        if cost <= left or not any(taken):
            taken[number].add(choice.index)
            left -= cost
    return [
        dataclasses.replace(run, cut=frozenset(c.index for c in run.chosen) - frozenset(own))
        for run, own in zip(runs, taken, strict=True)
    ]


def telling_order(runs: Sequence[CaseRun]) -> list[int]:
    """Positions of the runs, the one with the most telling planned shape first; in their own order otherwise."""
    weight = [max((c.weight for c in run.chosen if c.index not in run.cut), default=0) for run in runs]
    return sorted(range(len(runs)), key=lambda i: (-weight[i], i))
