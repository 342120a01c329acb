"""The decision: what of a run is new, known, changed, fixed, flaky, expired, vanished, undecided. Pure: no clock, no
disk, so that the shards of a run can be decided together afterwards.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cudadiag.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNDECIDED
from cudadiag.gate.baseline import Baseline, Entry
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.finding import Finding
from cudadiag.gate.matching import Match, match
from cudadiag.gate.rates import passes_needed
from cudadiag.gate.seen import Seen
from cudadiag.gate.status import Status
from cudadiag.gate.words import count_words, shape_list

ORDER = tuple(Status)


def decide(runs: Sequence[CaseRun], baseline: Baseline, today: datetime.date, *, all_cases: bool) -> list[Finding]:
    """Everything there is to say, the gravest first. `all_cases`: the run was about every case there is, so that an
    entry of another one has vanished."""
    found = [finding for run in runs for finding in _Case(run, baseline, today).findings()]
    if all_cases:
        names = {run.name for run in runs}
        gone = [entry for entry in baseline.entries if entry.case not in names]
        found += [
            Finding(Status.VANISHED, e.case, f"there is no such case any more ({place(e)})", entry=e) for e in gone
        ]
    return sorted(found, key=lambda finding: ORDER.index(finding.status))


def exit_code(
    findings: Iterable[Finding],
    runs: Sequence[CaseRun],
    *,
    strict: bool,
    finished: bool = True,
    may_be_empty: bool = False,
) -> int:
    """1 for what is new or changed (with `strict` also for what the baseline says wrongly), which wins over 3:
    something undecided, or nothing run at all. `may_be_empty`: a shard that no shape fell into decides nothing, and
    need not."""
    statuses = {finding.status for finding in findings}
    if any(status.is_red or (strict and status.is_stale) for status in statuses):
        return EXIT_FOUND
    evidence = any(seen.outcome.is_evidence for run in runs for seen in run.seen)
    evidence = evidence or (may_be_empty and not any(run.chosen for run in runs))
    if Status.UNDECIDED in statuses or not evidence or not finished:
        return EXIT_UNDECIDED
    return EXIT_CLEAN


def place(entry: Entry) -> str:
    """Where an entry stands in the baseline, in words."""
    return f"baseline line {entry.line}: {entry.reason}; {entry.owner}, {entry.issue}"


def belongs(seen: Seen, entries: Iterable[Entry], baseline: Baseline) -> tuple[Entry | None, Match]:
    """The entry whose signature a failure has, the best match first; None where none has it."""
    if seen.signature is None:
        return None, Match.NO
    matches = [(entry, match(entry, seen.signature, baseline.judgements)) for entry in entries]
    for wanted in (Match.SAME, Match.MAYBE):
        for entry, how in matches:
            if how is wanted:
                return entry, how
    return None, Match.NO


class _Case:
    """The decision about one case."""

    def __init__(self, run: CaseRun, baseline: Baseline, today: datetime.date) -> None:
        self.run, self.baseline, self.today = run, baseline, today
        self.entries = run.entries(baseline)
        self.covers = {e.place: run.covered(e) for e in self.entries}
        self.insides = {place: covers.inside for place, covers in self.covers.items()}
        self.hits: dict[int, list[Seen]] = defaultdict(list)
        self.maybe: set[int] = set()
        self.changed: dict[tuple[int, str], list[Seen]] = defaultdict(list)
        self.new: dict[str, list[Seen]] = defaultdict(list)

    def findings(self) -> Iterator[Finding]:
        if self.run.left_out is not None:
            yield Finding(Status.LEFT_OUT, self.run.name, self.run.left_out)
            return
        if self.run.problem is not None:
            yield Finding(Status.UNDECIDED, self.run.name, self.run.problem)
            if not self.run.seen:
                return
        self.sort_failures()
        yield from self.red()
        yield from self.undecided()
        for entry in self.entries:
            yield from self.of_entry(entry)

    def sort_failures(self) -> None:
        for seen in self.run.seen:
            if not seen.failed:
                continue
            here = [e for e in self.entries if seen.index in self.insides[e.place]]
            entry, how = belongs(seen, here, self.baseline)
            if entry is not None:
                self.hits[entry.place].append(seen)
                if how is Match.MAYBE:
                    self.maybe.add(entry.place)
            elif exact := [e for e in here if self.is_exact(e)]:
                self.changed[exact[0].place, self.group(seen)].append(seen)
            else:
                self.new[self.group(seen)].append(seen)

    def is_exact(self, entry: Entry) -> bool:
        """Whether an entry says at which shapes its crash is: one about any shape makes another crash no change."""
        return len(self.insides[entry.place]) < len(self.run.sweep) or len(self.run.sweep) == 1

    def group(self, seen: Seen) -> str:
        return self.baseline.judgements.group(seen.signature) if seen.signature else "-"

    def red(self) -> Iterator[Finding]:
        for group, seen in self.new.items():
            known, _ = belongs(seen[0], self.entries, self.baseline)
            reason = f"{seen[0].words}: {self.where(seen)}"
            if known is not None:
                reason += f"; the signature is known, but not here: `{known.where}` (baseline line {known.line})"
            yield self.crash(Status.NEW, reason, seen, group)
        for (number, group), seen in self.changed.items():
            entry = next(e for e in self.entries if e.place == number)
            reason = (
                f"{seen[0].words}: {self.where(seen)}; the baseline knows {' or '.join(entry.signatures)} here, "
                f"this is {group} ({place(entry)})"
            )
            yield self.crash(Status.CHANGED, reason, seen, group, entry)

    def where(self, failures: Sequence[Seen]) -> str:
        """`fails in 2 of 3 runs at n=5 and 3 other shapes`."""
        indices = indices_of(failures)
        return f"fails in {len(failures)} of {count_words(self.runs_at(indices), 'run')} at {self.shapes(indices)}"

    def shapes(self, indices: Sequence[int]) -> str:
        return shape_list([self.run.sweep.shape(index) for index in indices])

    def runs_at(self, indices: Sequence[int]) -> int:
        chosen = set(indices)
        return sum(s.index in chosen and s.outcome.is_evidence for s in self.run.seen)

    def crash(
        self, status: Status, reason: str, seen: Sequence[Seen], group: str | None = None, entry: Entry | None = None
    ) -> Finding:
        best = max(seen, key=lambda s: (_told(s), -s.index))
        indices = indices_of(seen)
        fine = best.signature.fine if best.signature else None
        found = group or self.group(best)
        return Finding(
            status, self.run.name, reason, indices, found, fine, entry, len(seen), self.runs_at(indices), best
        )

    def undecided(self) -> Iterator[Finding]:
        """Planned shapes without evidence, or with less than was asked for, one line for each reason."""
        reasons: dict[tuple[Status, str], list[int]] = defaultdict(list)
        for index in self.run.planned:
            if (lack := self.lack(index)) is not None:
                reasons[lack].append(index)
        if self.run.cut:
            reasons[Status.LEFT_OUT, "the budget was spent before"] = sorted(self.run.cut)
        for (status, reason), indices in reasons.items():
            if not (self.run.problem and reason == "planned and not run"):
                yield Finding(status, self.run.name, f"{reason}: {self.shapes(indices)}", tuple(indices))

    def lack(self, index: int) -> tuple[Status, str] | None:
        """What a planned shape lacks; None for one that failed, or passed as often as it was to be run."""
        seen = self.run.at(index)
        told = sum(s.outcome.is_evidence for s in seen)
        wanted = 1 if any(index in inside for inside in self.insides.values()) else self.run.repeat
        if told >= wanted or any(s.failed for s in seen):
            return None
        if not seen:
            return Status.UNDECIDED, "planned and not run"
        unresolved = [s.words for s in seen if not s.outcome.is_evidence]
        if not told:
            return Status.UNDECIDED, unresolved[-1]
        few = f"{told} of {wanted} runs say anything"
        if unresolved:
            return Status.UNDECIDED, f"only {few}: {unresolved[-1]}"
        return Status.LEFT_OUT, f"only {few}, the others were not run"

    def of_entry(self, entry: Entry) -> Iterator[Finding]:
        """What became of one known crash."""
        covers = self.covers[entry.place]
        if covers.why_none is not None:
            yield Finding(Status.VANISHED, self.run.name, f"{covers.why_none} ({place(entry)})", entry=entry)
            return
        runs = [s for s in self.run.seen if s.index in self.insides[entry.place] and s.outcome.is_evidence]
        if any(key[0] == entry.place for key in self.changed) and not self.hits[entry.place]:
            pass  # said as changed
        elif runs:
            yield self.known(entry, runs)
            if not self.hits[entry.place] and self.fresh(entry) >= passes_needed(entry.measured):
                return  # fixed: that it is expired besides is nobody's concern
        if self.today > entry.expires:
            reason = f"the date of a known crash has passed, {entry.expires} ({place(entry)})"
            yield Finding(Status.EXPIRED, self.run.name, reason, covers.indices, entry=entry)

    def watched(self, entry: Entry) -> list[int]:
        """The planned shapes of a known crash."""
        return [index for index in self.run.planned if index in self.insides[entry.place]]

    def fresh(self, entry: Entry) -> int:
        """Passes that each of these shapes has at least: where the rule is too wide, only some of them can fail."""
        passes = [sum(s.passed for s in self.run.at(index)) for index in self.watched(entry)]
        return min(passes, default=0)

    def known(self, entry: Entry, runs: Sequence[Seen]) -> Finding:
        hits, needed = self.hits[entry.place], passes_needed(entry.measured)
        rate = f"{entry.rate}" if entry.rate else "not measured"
        if not hits:
            indices = indices_of(runs)
            passed = (
                f"passed in {count_words(self.fresh(entry), 'fresh run')} of the {needed} at each of "
                f"{count_words(len(self.watched(entry)), 'shape')} that its rate ({rate}) demands"
            )
            if self.fresh(entry) >= needed:
                reason = f"{passed}, and failed in none: the entry can go ({place(entry)})"
                return Finding(Status.FIXED, self.run.name, reason, indices, entry=entry, runs=len(runs))
            status = Status.FLAKY if entry.rate and entry.rate.value < 1 else Status.KNOWN
            reason = f"{passed}: too few to call it fixed ({place(entry)})"
            return Finding(status, self.run.name, reason, indices, entry=entry, runs=len(runs))
        flaky = bool({s.index for s in hits} & {s.index for s in runs if s.passed})
        status = Status.FLAKY if flaky else Status.KNOWN
        reason = f"{hits[0].words}: {self.where(hits)}"
        if flaky:
            reason += f", recorded rate {rate}"
        if entry.place in self.maybe:
            reason += f"; may be the same as {' or '.join(entry.signatures)}: one of them does not know the kernel"
        passing = indices_of([s for s in runs if s.passed and s.index not in {h.index for h in hits}])
        if passing:
            reason += f"; passes at {self.shapes(passing)}"
        return self.crash(status, f"{reason} ({place(entry)})", hits, entry=entry)


def indices_of(seen: Iterable[Seen]) -> tuple[int, ...]:
    """The shapes of some probes, in sweep order."""
    return tuple(sorted({s.index for s in seen}))


def _told(seen: Seen) -> int:
    """How much a probe tells of its cause."""
    caused = seen.verdict.fault.caused if seen.verdict.fault else None
    if caused is None:
        return 0
    return sum(value is not None for value in (caused.kernel, caused.file, caused.line, caused.access))
