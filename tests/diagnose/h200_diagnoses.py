"""Diagnoses made on a real H200, weighed again from their ledgers: `python tests/diagnose/h200_diagnoses.py [--check]`.

Writes docs/explanation/h200-diagnoses.md. The ledgers are what `cudadiag diagnose` and `sanitize` left there; paths of
the checkout are replaced by /checkout.
"""

from __future__ import annotations

import functools
import io
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from cudadiag.cli import diagnose, sanitize
from cudadiag.diagnose.crosscheck import Agreement, cross_check
from cudadiag.diagnose.engine import Diagnosis, diagnosis
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.plans import Sanitizing
from cudadiag.diagnose.report import diagnosis_lines, sanitize_lines
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json
from cudadiag.store.ledger import Ledger, parse_ledger

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = Path(__file__).parent / "recorded/h200-diagnose.tar.xz"
PAGE = ROOT / "docs/explanation/h200-diagnoses.md"
CASES = ("verify_attn", "tree_flat", "bulk_tail", "commit_none", "decode_loop", "leaky_sweep")
OTHERS = {
    "diagnose_verify_attn_two": "diagnose verify_attn --device cuda (two GPUs)",
    "diagnose_illegal_instruction": "diagnose illegal_instruction --all",
    "diagnose_silent": "diagnose --all -- ./silent (a store left out of its machine code, not of its PTX)",
    "sanitize_verify_attn": "sanitize verify_attn",
    "sanitize_oob_far": "sanitize oob_far --all",
    "sanitize_oob_far_hung": "sanitize oob_far --all (another day)",
}
HEAD = """<!-- made by tests/diagnose/h200_diagnoses.py: do not edit -->
# Diagnoses on a real GPU

What `cudadiag diagnose CASE` said of the bundled cases with a planted defect on an NVIDIA H200 (driver 580.159, CUDA
13.0, compute-sanitizer 2025.3.1), weighed again from the ledgers of those runs; the source lines are left out here.
Each is one command with no shape given: the first failing one is searched for.

The usual explanations of a crash at a synchronisation, one by one, are in *verify_attn*: a buffer that does not match
(`buffer-mismatch`: `scores`, not the mask `vis`), memory exhaustion (`memory-exhausted`), a stale error
(`carried-over`). Those of an illegal instruction at small budgets are in *tree_flat*: miscompiled code (`miscompile`),
an alignment violation (`misalignment`), a shape constraint (the rule), nothing but chance or this GPU
(`hardware-or-chance`); and of the commit step that nothing was accepted for in *commit_none*.
"""


@dataclass(frozen=True)
class Recorded:
    """One run, its probes judged now."""

    ledger: Ledger
    history: Sequence[Judged]

    @property
    def evidence(self) -> Evidence:
        run = self.ledger.run
        plan = diagnose.plan_of(run.settings["search"], run.sweep, tuple(run.device["labels"]))
        found = plan.about.evidence(self.history)
        assert found is not None, run.run_id
        return found

    @property
    def diagnosis(self) -> Diagnosis:
        return diagnosis(self.evidence)

    @property
    def agreement(self) -> Agreement:
        return cross_check(self.evidence.own)

    @property
    def sanitizing(self) -> Sanitizing:
        run = self.ledger.run
        located = next((line.observer for line in self.ledger.probes if line.purpose != "sanitize"), "memcheck")
        return sanitize.plan_of(run.settings["search"], run.sweep, tuple(run.device["labels"]), located)

    @property
    def agreement_of_sanitize(self) -> Agreement:
        found = self.sanitizing.agreement(self.history)
        assert found is not None
        return found

    def lines(self) -> list[str]:
        if self.ledger.run.purpose == "diagnose":
            return diagnosis_lines(self.evidence, self.diagnosis, self.agreement, [])
        subject = self.sanitizing.about.subject_in(self.history)
        assert subject is not None
        return sanitize_lines(subject, self.agreement_of_sanitize, [], [])


@functools.cache
def recorded(name: str) -> Recorded:
    """`diagnose_verify_attn`, `sanitize_oob_far`, ..."""
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes()), mode="r:xz") as archive:
        member = archive.extractfile(f"{name}.ledger.jsonl")
        assert member is not None
        ledger = parse_ledger(member.read(), Path("/checkout/ledger.jsonl"))
    judging = judging_from_json(ledger.run.settings["judging"])
    return Recorded(ledger, [judging.judged(line) for line in ledger.probes])


def page() -> Iterator[str]:
    yield HEAD
    for name, words in ({f"diagnose_{name}": f"diagnose {name}" for name in CASES} | OTHERS).items():
        yield f"## cudadiag {words}\n\n```text"
        yield from (click.unstyle(line).rstrip() for line in recorded(name).lines())
        yield "```\n"


def main(words: list[str]) -> int:
    text = "\n".join(page()).rstrip() + "\n"
    stale = not PAGE.exists() or PAGE.read_text() != text
    if stale and "--check" not in words:
        PAGE.write_text(text)
    print(f"{'stale' if '--check' in words else 'made'}: {PAGE.name}" if stale else "current")
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
