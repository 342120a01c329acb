"""The table fault x observer, made from the recordings: `python tests/diagnose/faults_by_observer.py`, or `--check`.

Writes docs/reference/faults-by-observer.md (for people) and tests/diagnose/faults_by_observer.yaml (for tests).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from diagnose_recorded import ROOT, extra, faults, judged, observers

from cudadiag.diagnose.crosscheck import Agreement, Told, cross_check
from cudadiag.diagnose.witness import OBSERVERS, Witness

PAGE = ROOT / "docs/reference/faults-by-observer.md"
DATA = Path(__file__).with_suffix(".yaml")
LEAKS = ("leak", "heap_leak")
DESCRIBED = ROOT / "tests/gpu/faults.yaml"
HEAD = """<!-- made by tests/diagnose/faults_by_observer.py: do not edit -->
# What each observer says of each planted fault

Recorded on an NVIDIA H200 (driver 580.159, CUDA 13.0, compute-sanitizer 2025.3.1) by `tests/gpu/record_faults.py`; the
programs are in `tests/gpu`, one fault each. Judged by the same code as every probe. Made by one command:
`python tests/diagnose/faults_by_observer.py`.

`kind:line` is a fault with the source line it was caused at, `kind` alone has no line, `pass` means that the observer
saw nothing, `?` that it could not say (the tool was killed with the program and left no report). memcheck ran with 32
bytes of padding and tracked the order of streams. The kinds are those of the ledger; `other-cuda` is an error that a
call of the host's returned by its own fault, `host-exit` a program that ended with a status of its own.

The last column is the cross-check's verdict: *masked by* are observers under which a failure that is there without a
tool does not show, *only under* is the single one that found it. What passes under one observer proves nothing about
the others.
"""
ASKED_HEAD = """
## Told only when asked for, as a warning, or by a newer tool

| fault | asked how | told |
|---|---|---|"""
WHAT_HEAD = """
## What the faults are

| fault | source | what it does |
|---|---|---|"""
NOTES = """
## Known of these recordings

- Jumps into data or to low addresses (`bad_pc_data`, `bad_pc_low`) hang. No tool reports anything; a core dump asked
  for from outside shows the line of the jump.
- A store that is the kernel's last act can be swallowed: under initcheck and in core-dump mode `oob_far`, `null`,
  `host_pointer`, `late_malloc` and `use_after_free_big` show no device fault. In core-dump mode some of them die of
  SIGSEGV and leave no core. It need not be so: other kernels with such a store left a core.
- racecheck's word on `cluster_range` is another fault's: it says that block 7 "might not have entered yet"; the cluster
  has only 2. memcheck names it rightly.
- `ends_early` ends before anyone looks, unless launches block or memcheck waits: that is no masking by a tool.
- Far addresses of `many_blocks` fall, from run to run, into the window of shared or local memory: 717 or 700, the same
  bug.
- `local_far` is seen by nobody: the hardware folds the address back into local memory.
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
    if found.blocking_differs:
        words.append("differs with blocking, in one run each")
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


def asked() -> dict[tuple[str, str], str]:
    """(fault, asked how) -> what is told then."""
    leaks = {(f, "memcheck with `--leaks`"): cell(cross_check([extra(f, "leakcheck")]).told[0]) for f in LEAKS}
    newer = cell(cross_check([extra("shared_uninit", "allspaces")]).told[0])
    warned = Witness(judged("warp_hazard", "racecheck")).reading.sanitizer
    assert warned is not None
    warning = warned.records[0]
    return {
        **leaks,
        ("shared_uninit", "initcheck of compute-sanitizer 2025.4 or newer, with cudadiag's own options"): newer,
        ("warp_hazard", "racecheck: a warning, no fault"): f"{warning.kind.value}:{warning.line}",
    }


def page(rows: dict[str, dict[str, str]]) -> Iterator[str]:
    yield HEAD
    yield f"| fault | {' | '.join(OBSERVERS)} | agreement |"
    yield "|---" * (len(OBSERVERS) + 2) + "|"
    for fault, row in rows.items():
        yield f"| {fault} | {' | '.join(row.get(name, '') for name in OBSERVERS)} | {row['agreement']} |"
    yield ASKED_HEAD
    yield from (f"| {fault} | {how} | {told} |" for (fault, how), told in asked().items())
    yield WHAT_HEAD
    described = {
        f: (source, what) for source, rest in yaml.safe_load(DESCRIBED.read_text()).items() for f, what in rest.items()
    }
    yield from (f"| {fault} | `{described[fault][0]}` | {described[fault][1]} |" for fault in rows)
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
