"""Explanation by chance, or by this very GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence, outcomes_words
from cudadiag.diagnose.experiments import REPEATS, Experiment
from cudadiag.diagnose.explanations.words import only_text, printed_words
from cudadiag.diagnose.interface import Expects, Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.xid_lines import xid_lines
from cudadiag.model import FaultKind, Outcome


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
        if hardware and only_text(evidence, hardware):
            return supported(f"{printed_words(hardware)}: failing hardware", hardware, suggested=True)
        if hardware:
            return supported(f"the driver reports failing hardware ({hardware[0].judged.verdict.reason})", hardware)
        if evidence.setting.troubles:
            return supported(f"NVML counts against it: {', '.join(evidence.setting.troubles)}", suggested=True)
        same, devices = evidence.same_again, evidence.by_device
        if any(_differs(runs) for runs in devices.values()):
            return supported(f"it differs from run to run: {outcomes_words(same)}", same)
        if _differs(same):
            each = ", ".join(f"{outcomes_words(runs)} on {label}" for label, runs in devices.items())
            return supported(f"it depends on the GPU: {each}", same)
        if len(same) <= REPEATS:
            return untested(f"seen {len(same)} times, {REPEATS + 1} are needed")
        if not any(w.outcome.is_failure for w in same):
            return untested(f"{outcomes_words(same)}: a rare fault is not excluded", same)
        return _always(evidence)

    def rate(self, evidence: Evidence) -> str:
        return ""  # its own advice says it


def _always(evidence: Evidence) -> Finding:
    """Where every run failed: that is no chance, but it may be this GPU."""
    same = evidence.same_again
    found = f"{outcomes_words(same)} in fresh processes"
    if not evidence.uses_cuda:
        return refuted(f"{found}; no GPU is in use", same)
    if all(w.emulated for w in same):
        return refuted(f"{found}; the emulated device has no hardware", same)
    if len(evidence.by_device) > 1:
        return refuted(f"{found}, on {len(evidence.by_device)} GPUs", same)
    readable = evidence.setting.device == "cuda" and all(w.judged.line.facts.xid.readable for w in same)
    if readable and not _only_results(same):
        return refuted(f"{found}, no Xid of failing hardware in the kernel log{_memory(evidence)}", same)
    missing = evidence.setting.problem(Experiment.OTHER_GPU) or "it did not run on another GPU"
    looked = f"{missing}, {_log(evidence, readable)}{_memory(evidence)}"
    return untested(f"{found}: no chance; this GPU's hardware is not excluded ({looked})", same)


def _memory(evidence: Evidence) -> str:
    return ", no uncorrected ECC error counted before the run" if evidence.setting.troubles == () else ""


def _only_results(runs: Sequence[Witness]) -> bool:
    """Whether all there is are wrong results, or exit statuses that may mean them."""
    return all(w.outcome is Outcome.WRONG or w.kind is FaultKind.HOST_EXIT for w in runs)


def _log(evidence: Evidence, readable: bool) -> str:
    if readable:
        return "a GPU that computes wrongly leaves no Xid"
    return "no device was in use" if evidence.setting.device == "none" else "the kernel log was not readable"


def _differs(runs: Sequence[Witness]) -> bool:
    return len({w.outcome.is_failure for w in runs}) > 1


def _hardware_xids(lines: tuple[str, ...]) -> list[int]:
    return [x.number for x in xid_lines(lines) if x.entry is not None and x.entry.blame == "hardware"]
