"""The second set of recordings (63 planted faults on an H200) as judged probes, and as a bench that answers a plan."""

from __future__ import annotations

import functools
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudadiag.diagnose.experiments import Setting
from cudadiag.diagnose.plans import About, Diagnosing, Locating
from cudadiag.diagnose.subject import Subject
from cudadiag.diagnose.witness import OBSERVERS, Witness
from cudadiag.evidence import Expectations, read, to_json
from cudadiag.model import Axis, Sweep
from cudadiag.session.judged import Judged
from cudadiag.session.judging import Judging
from cudadiag.session.plans import OneShape
from cudadiag.session.task import Plan, Task
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts, XidFacts

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "tests/evidence/recorded/h200-driver580-cuda13.0-faults2.tar.xz"
NEWER = ROOT / "tests/evidence/recorded/h200-driver580-sanitizer2026.4.tar.xz"
DEVICE = "cuda:GPU-recorded"
KEYS = {
    "stdout": "stdout",
    "stderr": "stderr",
    "driver.log": "driver_log",
    "report.xml": "sanitizer_xml",
    "report.txt": "sanitizer_log",
    "core.gpu": "core",
}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


@functools.cache
def files(archive: Path = ARCHIVE) -> Mapping[str, bytes]:
    """Path inside the archive -> bytes."""
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:xz") as opened:
        members = [member for member in opened.getmembers() if member.isfile()]
        return {m.name.removeprefix("./"): opened.extractfile(m).read() for m in members}  # type: ignore[union-attr]


@functools.cache
def faults() -> tuple[str, ...]:
    return tuple(sorted({name.split("/")[1] for name in files() if name.startswith("runs/")}))


def observers(fault: str) -> tuple[str, ...]:
    """The observers of ours that the fault was recorded under."""
    return tuple(name for name in OBSERVERS if f"runs/{fault}/{name}/rc" in files())


def facts_of(fault: str, observer: str, archive: Path = ARCHIVE) -> ProbeFacts:
    """How the run ended, as the harness would have told it."""
    status, wall = files(archive)[f"runs/{fault}/{observer}/rc"].split()
    code = int(status)
    if code == 124:
        return ProbeFacts(signal=9, timed_out=True, wall_s=float(wall), xid=XidFacts(readable=False))
    number = code - 128 if code > 128 else code if observer in TOOLS and code in (6, 9, 11) else None
    return ProbeFacts(exit_code=None if number else code, signal=number, wall_s=float(wall))


@functools.cache
def judged(fault: str, observer: str, number: int = 1, purpose: str = "recorded", tag: str = "") -> Judged:
    """A recorded run as a judged line of a ledger."""
    return _judged(fault, observer, number, purpose, tag)


def extra(fault: str, recorded: str) -> Witness:
    """A run under options that only some faults were worth: `leakcheck` (memcheck asked for leaks), `allspaces`
    (initcheck of a newer tool, shared memory too)."""
    observer, archive = {"leakcheck": ("memcheck", ARCHIVE), "allspaces": ("initcheck", NEWER)}[recorded]
    leaks = recorded == "leakcheck"
    return Witness(_judged(fault, observer, recorded=recorded, archive=archive, leaks=leaks))


def _judged(
    fault: str, observer: str, number: int = 1, purpose: str = "recorded", tag: str = "", *, recorded: str = "",
    archive: Path = ARCHIVE, leaks: bool = False,
) -> Judged:  # fmt: skip
    place = recorded or observer
    prefix = f"runs/{fault}/{place}/"
    kept = {KEYS[name]: data for path, data in files(archive).items() if (name := path.removeprefix(prefix)) in KEYS}
    line = ProbeLine(
        number=number,
        shape={"fault": fault},
        index=None,
        purpose=purpose,
        observer=observer,
        device=DEVICE,
        memory_model="hardware",
        repeat=0,
        started="2026-11-29T19:34:00+00:00",
        facts=facts_of(fault, place, archive),
        tag=tag,
        reading=to_json(read(kept)),
    )
    return Judging(Expectations(target="command", leaks=leaks)).judged(line)


def about(fault: str) -> About:
    """The question: what is wrong with this fault's program?"""
    sweep = Sweep((Axis("fault", (fault,)),), ((fault,),))
    setting = Setting(device="cuda", target="command", memory_model="hardware", gpus=1)
    subject = Subject({"fault": fault}, 0, "the recording")
    return About(sweep, setting, subject, Locating(sweep, "blocking"), (DEVICE,))


def answered(plan: Plan, fault: str, most: int = 40) -> list[Judged]:
    """What a plan gets when the recordings answer it."""
    history: list[Judged] = []
    while tasks := plan.next(history).tasks:
        for task in tasks:
            history.append(_answer(task, fault, len(history) + 1))
        assert len(history) < most, "the plan never ends"
    return history


def _answer(task: Task, fault: str, number: int) -> Judged:
    observer = task.observer or "blocking"
    if observer in observers(fault):
        return judged(fault, observer, number, task.purpose, task.tag)
    line = judged(fault, "plain", number, task.purpose, task.tag).line
    gone = ProbeFacts(start_error=f"{fault} was not recorded under {observer}")
    fields = {**vars(line), "observer": observer, "facts": gone, "reading": {}}
    return Judging(Expectations(target="command")).judged(ProbeLine(**fields))


def diagnosed(fault: str, *, everything: bool = False) -> tuple[Diagnosing, Sequence[Judged]]:
    """The plan, and the probes it asked for."""
    plan = Diagnosing(about(fault), everything)
    return plan, answered(plan, fault)


__all__ = ["OneShape", "about", "answered", "diagnosed", "extra", "facts_of", "faults", "files", "judged", "observers"]
