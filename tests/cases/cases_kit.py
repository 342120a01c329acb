"""What the tests of the bundled cases share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from cudadiag.case import Case, load
from cudadiag.case.expr import parse
from cudadiag.evidence import Expectations, judge
from cudadiag.model import Shape, Verdict
from cudadiag.session.judging import Judging
from harness.launcher import run_probe
from harness.records import ProbeFacts

CASES = Path(__file__).resolve().parents[2] / "cases"
FILES = sorted(path for path in CASES.rglob("*.yaml") if path.name != "expected.yaml")
NAMES = [path.stem for path in FILES]
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((CASES / "faults" / "expected.yaml").read_text())


def case_named(name: str) -> Case:
    return load(next(path for path in FILES if path.stem == name))


def is_kernel(case: Case) -> bool:
    return case.target.kind == "kernel"


def kernel_steps(case: Case, device: str) -> Iterator[dict[str, Any]]:
    """The evaluated step of every shape, as the worker would get it."""
    for index in range(len(case.sweep)):
        target = case.request(case.sweep.shape(index), folder="/nowhere", device=device).target
        yield target["steps"][0] if "steps" in target else dict(target)


def holds(condition: str, values: dict[str, Any]) -> bool:
    return bool(parse(condition).evaluate(values))


def probed(case: Case, shapes: Shape | Sequence[Shape], folder: Path, **settings: Any) -> ProbeFacts:
    """The facts of one probe; on the emulated device unless `device` says otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    return run_probe(case.request(shapes, folder=folder, **{"device": "emulator", **settings}))


def judged(case: Case, shape: Shape, folder: Path, *, check: bool = True, **settings: Any) -> Verdict:
    """The verdict of one probe on the emulated device, which checks memory itself: memcheck is no tool there."""
    observer = "blocking" if case.observer == "memcheck" else case.observer
    facts = probed(case, shape, folder, observer=observer, check=check, **settings)
    compared = getattr(case.target, "reference", None) is not None
    expected = Expectations(
        target=case.target.kind, observer=observer, check=check, compared=compared, success=case.success
    )
    return judge(facts, Judging(expected).reading(facts), expected)


def line_with(path: str, text: str) -> set[int]:
    """The numbers of the lines of a source that contain `text`."""
    return {number for number, line in enumerate(Path(path).read_text().splitlines(), 1) if text in line}
