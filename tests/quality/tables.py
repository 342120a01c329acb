"""The benchmark's results as JSON, plain text and the page of the documentation."""

from __future__ import annotations

from collections import Counter
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from cudadiag.search.vocabulary import FAMILIES

if TYPE_CHECKING:
    from bench_rules import Entry, Run


def as_json(entries: list[Entry], summary: dict[str, object]) -> dict[str, Any]:
    return {"rules": [_entry_json(e) for e in entries], "totals": summary}


def _entry_json(entry: Entry) -> dict[str, Any]:
    subject = entry.subject
    return {
        "id": subject.name,
        "kind": entry.kind,
        "points": len(subject.sweep),
        "failing": sum(o != "pass" for o in subject.truth),
        "first": None if subject.first is None else subject.sweep.shape(subject.first),
        **_row(entry),
        "beside": {name: vars(b) for name, b in entry.beside.items()},
        "runs": [vars(r) for r in entry.runs],
    }


def _row(entry: Entry) -> dict[str, Any]:
    """One line of the table."""
    runs = entry.runs
    return {
        "seeds": len(runs),
        "first_right": sum(r.first_right for r in runs),
        "claims": dict(Counter(r.claim for r in runs)),
        "exact": sum(r.exact for r in runs),
        "order_right": None if runs[0].order_right is None else sum(bool(r.order_right) for r in runs),
        "rules": list(_commonest(runs)),
        "probes_to_the_answer": round(mean(r.to_the_answer for r in runs), 1),
        "probes_attacks_and_proof": round(mean(r.surer for r in runs), 1),
        "bits": round(median(bits), 1) if (bits := [r.bits for r in runs if r.bits is not None]) else None,
        "false_claims": sum(r.false_claim for r in runs),
        "seconds": round(mean(r.seconds for r in runs), 3),
    }


def _commonest(runs: tuple[Run, ...]) -> tuple[str, ...]:
    return Counter(r.rules for r in runs).most_common(1)[0][0]


HEADS = (
    "rule",
    "shapes",
    "first right",
    "claim",
    "exact",
    "probes",
    "bound",
    "attack+proof",
    "linear",
    "bisect",
    "find",
)


def _cells(entry: Entry) -> list[str]:
    row, n = _row(entry), len(entry.runs)
    claims = ", ".join(name if count == n else f"{name} {count}" for name, count in sorted(row["claims"].items()))
    right = f"{row['first_right']}/{n}"
    if row["order_right"] is not None:
        right += f", order {row['order_right']}/{n}"
    others = [
        f"{entry.beside[m].probes}{'' if entry.beside[m].right else ' wrong'}" if m in entry.beside else ""
        for m in ("linear", "bisect", "hypothesis.find")
    ]
    return [
        entry.subject.name,
        str(len(entry.subject.sweep)),
        right,
        claims,
        f"{row['exact']}/{n}",
        f"{row['probes_to_the_answer']:.1f}",
        "" if row["bits"] is None else f"{row['bits']:.0f}",
        f"{row['probes_attacks_and_proof']:.1f}",
        *others,
    ]


def plain(entries: list[Entry], summary: dict[str, object]) -> str:
    rows = [list(HEADS), *map(_cells, entries)]
    widths = [max(len(r[k]) for r in rows) for k in range(len(HEADS))]
    lines = []
    for number, row in enumerate(rows):
        lines.append("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        if number:
            lines += [f"    {rule}" for rule in _commonest(entries[number - 1].runs)]
    lines += ["", *(f"{name}: {_say(value)}" for name, value in summary.items())]
    return "\n".join(lines)


def _say(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return f"{value:.1%}" if isinstance(value, float) and 0 < value < 1 else str(value)


INTRODUCTION = """# How good the search is

Made by `python tests/quality/bench_rules.py tests/quality/rules.yaml --markdown`; do not edit.

Each row is a sweep with a true failing rule that the search does not know, with the structure of a real CUDA bug, on
a simulated kernel under default settings: {seeds} seeds, {flaky} for the flaky ones.

- **first right**: the first failing shape in sweep order is the true one; **exact**: the predicted outcome of every
  shape is.
- **probes**: processes up to the answer (screening, rate, halving, minimising), mean.
- **bound**: the bits that naming the rule costs under the vocabulary's weights, divided by the channel's capacity where
  the fault is flaky. No search that asks yes/no questions can take fewer on average.
- **attack+proof**: processes that made the answer surer (attacks, earlier shapes run, repeats, sequences).
- **linear**, **bisect**, **find** (`hypothesis.find`): processes of other methods in the same run, with "wrong" where
  they name another first failing shape.
"""


def markdown(entries: list[Entry], summary: dict[str, object], seeds: int, flaky_seeds: int) -> str:
    lines = [INTRODUCTION.format(seeds=seeds, flaky=flaky_seeds), "## Totals", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_say(value)} |" for name, value in summary.items() if "seconds" not in name]
    lines += ["", "## Rule by rule", "", "| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(_cells(e)) + " |" for e in entries]
    lines += ["", "## The rules it names", "", "The commonest wording over the seeds.", ""]
    for entry in entries:
        lines += [f"- **{entry.subject.name}**: " + "; ".join(f"`{r}`" for r in _commonest(entry.runs))]
    lines += ["", "## The vocabulary", "", VOCABULARY, "", "| family | conditions | weight |", "|---|---|---|"]
    lines += [f"| {f.name} | `{f.says}` | {f.mass:.2f} |" for f in FAMILIES]
    return "\n".join(lines)


VOCABULARY = """What a rule may be made of. A family shares its weight among its members; a threshold is tried between
any two values that its term takes, and is likelier at limits and powers of two. `a`, `b`, `c`, `d` are axes and named
quantities of the case."""
