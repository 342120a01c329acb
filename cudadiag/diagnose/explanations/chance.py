"""Explanation by chance, or by this very GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence, outcomes_words
from cudadiag.diagnose.experiments import REPEATS, Experiment
from cudadiag.diagnose.interface import Expects, Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.xid_lines import xid_lines
from cudadiag.model import FaultKind


class HardwareOrChance(Explanation):
    """The same shape does not always fail, or only this GPU makes it fail."""

    name = "hardware-or-chance"
    title = "Flaky, or this GPU's hardware"
    predicts = "repeats in fresh processes differ; the kernel log has an Xid of failing hardware; another GPU is fine"
    competes = False
    expects: ClassVar[Expects] = {Experiment.REPEAT: "differs", Experiment.OTHER_GPU: "passes"}
    needs_cuda = False
    advice = "measure the rate (run --repeat 100), try another GPU, look at the ECC counters (nvidia-smi -q -d ECC)"

    def weigh(self, evidence: Evidence) -> Finding:
        hardware = [w for w in evidence.own if _hardware_xids(w.judged.line.facts.xid.lines)]
        hardware += evidence.with_kind(FaultKind.ECC, FaultKind.NVLINK, FaultKind.DEVICE_LOST)
        if hardware:
            return supported(f"the driver reports failing hardware ({hardware[0].judged.verdict.reason})", hardware)
        same, devices = evidence.same_again, evidence.by_device
        if any(_differs(runs) for runs in devices.values()):
            return supported(f"it differs from run to run: {outcomes_words(same)}", same)
        if _differs(same):
            each = ", ".join(f"{outcomes_words(runs)} on {label}" for label, runs in devices.items())
            return supported(f"it depends on the GPU: {each}", same)
        if len(same) <= REPEATS:
            return untested(f"seen {len(same)} times, {REPEATS + 1} are needed")
        where = f", on {len(devices)} GPUs" if len(devices) > 1 else ""
        return refuted(f"{outcomes_words(same)} in fresh processes{where}{_xid_words(evidence)}", same)


def _differs(runs: Sequence[Witness]) -> bool:
    return len({w.outcome.is_failure for w in runs}) > 1


def _hardware_xids(lines: tuple[str, ...]) -> list[int]:
    return [x.number for x in xid_lines(lines) if x.entry is not None and x.entry.blame == "hardware"]


def _xid_words(evidence: Evidence) -> str:
    if evidence.setting.device != "cuda":
        return ""
    readable = any(w.judged.line.facts.xid.readable for w in evidence.own)
    return ", no Xid of failing hardware" if readable else "; the kernel log is not readable"
