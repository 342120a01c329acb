"""Measures the emulated device against the recording and writes the table of docs/reference/emulator-numerics.md.

python tests/emulator/conformance/conf_report.py        prints what changed; --write replaces the table
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from conf_bounds import BOUNDS, Bound
from conf_compare import difference
from conf_recording import Recorded, Recording, find, load
from conf_run import run_case
from conf_table import table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "reference" / "emulator-numerics.md"
MARKS = ("<!-- measured: begin -->", "<!-- measured: end -->")


@dataclass
class Measured:
    """Over all kernels of a family."""

    differ: int = 0
    total: int = 0
    ulp: int = 0


def measure(recording: Recording) -> dict[str, Measured]:
    """Runs every kernel that has a bound."""
    from harness.devices.emulator import EmulatedDevice

    found: dict[str, Measured] = {}
    device = EmulatedDevice(workers=1, cache=False)
    for name, case in table().items():
        if case.family not in BOUNDS:
            continue
        recorded: Recorded = recording.cases[name]
        entry = found.setdefault(case.family, Measured())
        for got, want, kind in zip(run_case(device, case, recorded.ptx), recorded.outputs, case.kinds, strict=True):
            apart = difference(got, want, kind)
            entry.differ += apart.count
            entry.total += apart.total
            entry.ulp = max(entry.ulp, apart.ulp)
    return found


def rows(measured: dict[str, Measured]) -> str:
    lines = [
        "| form or function | results that differ | largest difference | allowed by the tests |",
        "|---|---|---|---|",
    ]
    for family, entry in measured.items():
        share = f"{100 * entry.differ / entry.total:.1f} % of {entry.total}"
        lines.append(f"| `{family}` | {share} | {places(family, entry.ulp)} | {allowed(BOUNDS[family])} |")
    return "\n".join(lines)


def places(family: str, ulp: int) -> str:
    limit = BOUNDS[family]
    if limit.any_nan:
        return "NaN payloads"
    return f"{ulp} ulp" if ulp <= max(limit.ulp, 1) else "see the next column"


def allowed(limit: Bound) -> str:
    text = f"{limit.ulp} ulp" if limit.ulp < 1 << 32 else "2^32 ulp"
    if limit.absolute:
        text += f" or {limit.absolute:.1e}"
    if limit.any_nan:
        text = "any NaN for a NaN"
    if limit.outside:
        text += f", {limit.outside} results outside"
    return f"{text} ({limit.why})" if limit.why else text


def page_with(page: str, new: str, about: dict[str, str]) -> str:
    """The page with its measured part replaced."""
    source = f"Measured on {about['device']}, driver {about['driver']}, NVRTC {about['nvrtc']}.\n\n"
    return re.sub(f"{MARKS[0]}.*{MARKS[1]}", lambda _: f"{MARKS[0]}\n{source}{new}\n{MARKS[1]}", page, flags=re.S)


def main() -> int:
    path = find(HERE)
    if path is None:
        print("there is no recording")
        return 1
    recording = load(path)
    page = PAGE.read_text()
    new = page_with(page, rows(measure(recording)), recording.about)
    if "--write" in sys.argv:
        PAGE.write_text(new)
    else:
        print("unchanged" if new == page else new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
