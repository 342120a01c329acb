"""The table fault x observer, made from the recordings: `python tests/diagnose/faults_by_observer.py`, or `--check`.

Writes docs/reference/faults-by-observer.md (for people) and tests/diagnose/faults_by_observer.yaml (for tests).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from diagnose_recorded import ROOT, faults, judged, observers

from cudadiag.diagnose.crosscheck import Agreement, Told, cross_check
from cudadiag.diagnose.witness import OBSERVERS, Witness

PAGE = ROOT / "docs/reference/faults-by-observer.md"
DATA = Path(__file__).with_suffix(".yaml")
HEAD = """<!-- made by tests/diagnose/faults_by_observer.py: do not edit -->
# What each observer says of each planted fault

Recorded on an NVIDIA H200 (driver 580.159, CUDA 13.0, compute-sanitizer 2025.3.1) by `tests/gpu/record_faults.py`; the
programs are `tests/gpu/zoo.cu` and `zoo2.cu`, one fault each. Judged by the same code as every probe. Made by one
command: `python tests/diagnose/faults_by_observer.py`.

`kind:line` is a fault with the source line it was caused at, `kind` alone has no line, `pass` means that the observer
saw nothing, `?` that it could not say. memcheck ran with 32 bytes of padding. The last column is the cross-check's
verdict: *masked by* are observers under which a failure that is there without a tool does not show, *only under* is
the single one that found it. What passes under one observer proves nothing about the others.
"""
NOTES = """
Known of these recordings:

- `race` under racecheck ran out of memory (another recording had taken it); the first set of recordings has the hazard.
- Jumps into data or to low addresses (`bad_pc_data`, `bad_pc_low`) hang. No tool reports anything; a core dump asked
  for from outside shows the line of the jump.
- In core-dump mode `oob_far`, `host_pointer` and `late_malloc` die of SIGSEGV and leave no core: the store is
  swallowed.
- `warp_hazard` is told by racecheck only as information, `shared_uninit` by newer tools only, `leak` and `heap_leak`
  only with `--leak-check full`.
"""


def agreement(fault: str) -> Agreement:
    """What the recorded observers say together."""
    return cross_check(Witness(judged(fault, name, number)) for number, name in enumerate(observers(fault), 1))


def cell(told: Told) -> str:
    """One observer's word in the table."""
    witness = told.witness
    if not told.runs:
        return "?"
    if not witness.outcome.is_failure:
        return "pass"
    kind = witness.kind.value if witness.kind else witness.outcome.value
    line = witness.caused.line if witness.caused else None
    return f"{kind}:{line}" if line else kind


def verdict(found: Agreement) -> str:
    words = []
    if found.masked_by:
        words.append(f"masked by {', '.join(found.masked_by)}")
    if found.only_under:
        words.append(f"only under {found.only_under}")
    if found.only_with_blocking_off:
        words.append("only with blocking off")
    if found.only_with_blocking_on:
        words.append("only with blocking on")
    if found.vanishes_under_tools:
        words.append("vanishes under every tool")
    return "; ".join(words)


def table() -> dict[str, dict[str, str]]:
    """Fault -> observer -> word, and the verdict under `agreement`."""
    rows = {}
    for fault in faults():
        found = agreement(fault)
        row = {told.observer: cell(told) for told in found.told}
        rows[fault] = {**row, "agreement": verdict(found)}
    return rows


def page(rows: dict[str, dict[str, str]]) -> Iterator[str]:
    yield HEAD
    yield f"| fault | {' | '.join(OBSERVERS)} | agreement |"
    yield "|---" * (len(OBSERVERS) + 2) + "|"
    for fault, row in rows.items():
        yield f"| {fault} | {' | '.join(row.get(name, '') for name in OBSERVERS)} | {row['agreement']} |"
    yield NOTES.rstrip()


def made() -> dict[Path, str]:
    rows = table()
    head = "# made by faults_by_observer.py: do not edit\n"
    data = head + yaml.safe_dump(rows, sort_keys=True, width=120)
    return {PAGE: "\n".join(page(rows)) + "\n", DATA: data}


def main(words: list[str]) -> int:
    stale = [path for path, text in made().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if "--check" not in words:
            path.write_text(made()[path])
    print("\n".join(f"{'stale' if '--check' in words else 'made'}: {path.name}" for path in stale) or "current")
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
