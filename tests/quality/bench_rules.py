"""How good is the search? Runs it on a file of failing rules; says for each if the answer is right and what it cost.

    python tests/quality/bench_rules.py tests/quality/rules.yaml [--seeds 20] [--flaky-seeds 200] [--json]

An entry that speaks of `first_in_process` or `earlier` is searched with sequences, as a case with `isolation: sequence`
is; everything else runs under the default settings. Exit status 0; 1 where a `proven` answer was false; 2 where the
file is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from besides import Beside, beside
from restricted import Refused
from simulated import Kernel, load, search
from tables import as_json, markdown, plain

from cudadiag.model import Claim
from cudadiag.search import Answer, Observation, Purpose, Settings

SURER = (Purpose.ATTACK, Purpose.PROVE, Purpose.CONFIRM, Purpose.SEQUENCE)


@dataclass(frozen=True)
class Run:
    """One search judged against the truth. `first_right`: the first failing shape (or that there is none). `exact`: the
    predicted outcome of every legal shape. `order_right`: the order dependence (None where the entry has none)."""

    seed: int
    first_right: bool
    claim: str
    confidence: float
    exact: bool
    order_right: bool | None
    rules: tuple[str, ...]
    to_the_answer: int
    surer: int
    by_purpose: dict[str, int]
    bits: float | None
    seconds: float

    @property
    def false_claim(self) -> bool:
        return not self.first_right and self.claim in (Claim.PROVEN.value, Claim.IMPLIED.value)


@dataclass(frozen=True)
class Entry:
    """All runs of one entry, and what other methods make of it (not for flaky and order-dependent ones)."""

    subject: Kernel
    runs: tuple[Run, ...]
    beside: dict[str, Beside]

    @property
    def kind(self) -> str:
        return "order" if self.subject.stateful else "flaky" if self.subject.rate < 1 else "deterministic"


def judge(subject: Kernel, seed: int) -> Run:
    """One search under default settings; the seed serves the search and, for flaky entries, the simulated chance."""
    start = time.perf_counter()
    found, seen = search(subject, Settings(seed=seed, sequence=subject.stateful), chance_seed=seed + 1000)
    seconds = time.perf_counter() - start
    return Run(
        seed=seed,
        first_right=found.first == subject.first,
        claim=found.claim.value,
        confidence=found.confidence,
        exact=found.predicted == subject.truth,
        order_right=_order_right(subject, found) if subject.stateful else None,
        rules=_rules(found),
        to_the_answer=found.effort.to_the_answer,
        surer=_spent(seen, SURER),
        by_purpose=dict(found.effort.by_purpose),
        bits=found.effort.bits,
        seconds=seconds,
    )


def _spent(seen: list[Observation], purposes: tuple[Purpose, ...]) -> int:
    return sum(o.alone and o.purpose in purposes for o in seen)


def _rules(found: Answer) -> tuple[str, ...]:
    rules = [f"{r.outcome} where {r.text}" for r in found.rules]
    if found.rate is not None and found.rate.flaky:
        rate = found.rate
        what = "whatever the shape, " if rate.whatever_the_shape else ""
        rules.append(f"{what}in {rate.fails} of {rate.runs} runs ({rate.low:.0%} to {rate.high:.0%})")
    if found.order is not None and found.order.kind != "independent":
        rules.append(found.order.text)
    return tuple(rules or [found.rule_note or found.claim_text])


def _order_right(subject: Kernel, found: Answer) -> bool:
    """The reported sequence shows the difference from running alone, and no shape before the last can be left out."""
    if found.order is None or found.order.kind == "independent":
        return False
    *earlier, last = found.order.sequence
    alone = subject.outcome(last, ()).is_failure
    differs = subject.outcome(last, earlier).is_failure != alone
    shorter = [earlier[:i] + earlier[i + 1 :] for i in range(len(earlier))]
    return differs and all(subject.outcome(last, s).is_failure == alone for s in shorter)


def bench(subject: Kernel, seeds: int, flaky_seeds: int) -> Entry:
    count = flaky_seeds if subject.rate < 1 else seeds
    runs = tuple(judge(subject, seed) for seed in range(count))
    others = {} if subject.stateful or subject.rate < 1 else beside(subject)
    return Entry(subject, runs, others)


def totals(entries: list[Entry]) -> dict[str, object]:
    """The numbers over a whole file. Shares of sweeps leave out the two largest, where any search looks good."""
    plain_entries = [e for e in entries if e.kind == "deterministic"]
    runs = [r for e in plain_entries for r in e.runs]
    largest = sorted(plain_entries, key=lambda e: -len(e.subject.sweep))[:2]
    smaller = [e for e in plain_entries if e not in largest] or plain_entries
    spent = sum(mean(r.to_the_answer for r in e.runs) for e in smaller)
    every = [r for e in entries for r in e.runs]
    claims = Counter(r.claim for r in every)
    return {
        "deterministic rules": len(plain_entries),
        "first right, every seed": sum(all(r.first_right for r in e.runs) for e in plain_entries),
        "failing set exact, every seed": sum(all(r.exact for r in e.runs) for e in plain_entries),
        "failing set exact, share of runs": round(mean(r.exact for r in runs), 4) if runs else None,
        "probes to the answer, median": median(r.to_the_answer for r in runs) if runs else None,
        "probes to the answer, largest": max((r.to_the_answer for r in runs), default=None),
        "share of running every shape, without the two largest": round(
            spent / sum(len(e.subject.sweep) for e in smaller), 4
        )
        if smaller
        else None,
        "probes for attacks and proof, median": median(r.surer for r in runs) if runs else None,
        "claims": dict(sorted(claims.items())),
        "proven and false": sum(r.claim == Claim.PROVEN.value and not r.first_right for r in every),
        "implied and false": sum(r.claim == Claim.IMPLIED.value and not r.first_right for r in every),
        "search seconds, mean": round(mean(r.seconds for r in every), 3) if every else None,
    } | {
        f"{name}: first right": f"{right} of {len(plain_entries)} in {probes} probes"
        for name, right, probes in _others(plain_entries)
    }


def _others(entries: list[Entry]) -> list[tuple[str, int, int]]:
    names = list(entries[0].beside) if entries else []
    return [
        (name, sum(e.beside[name].right for e in entries), sum(e.beside[name].probes for e in entries))
        for name in names
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="a file of the form of tests/quality/rules.yaml")
    parser.add_argument("--seeds", type=int, default=20, help="searches of each deterministic entry (default 20)")
    parser.add_argument("--flaky-seeds", type=int, default=200, help="searches of each flaky entry (default 200)")
    parser.add_argument("--only", help="names of entries, with commas between")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object on stdout")
    form.add_argument("--markdown", action="store_true", help="the page docs/reference/search-quality.md")
    options = parser.parse_args(arguments)
    try:
        subjects = load(options.file)
    except (OSError, Refused, ValueError) as error:
        print(f"bench_rules: {error}", file=sys.stderr)
        return 2
    wanted = set(options.only.split(",")) if options.only else None
    entries = [bench(s, options.seeds, options.flaky_seeds) for s in subjects if wanted is None or s.name in wanted]
    summary = totals(entries)
    if options.json:
        print(json.dumps(as_json(entries, summary), indent=1))
    else:
        print(
            markdown(entries, summary, options.seeds, options.flaky_seeds)
            if options.markdown
            else plain(entries, summary)
        )
    return 1 if summary["proven and false"] else 0


if __name__ == "__main__":
    sys.exit(main())
