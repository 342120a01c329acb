"""What a search concludes: frozen, plain values, JSON by `Answer.to_json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cudadiag.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNDECIDED
from cudadiag.model import Claim, Scalar

LONGEST_PREDICTION = 5000  # shapes; a longer table of predictions is left out of the JSON


@dataclass(frozen=True)
class Counts:
    """The counts behind a claim. `earlier` are the shapes before the first failing one in sweep order."""

    shapes: int
    run: int  # shapes with evidence of their own (alone)
    failing: int
    unknown: int  # shapes given up as unresolved
    processes: int
    earlier: int = 0
    earlier_run: int = 0
    attacks: int = 0  # random untested shapes at which the final rule was tried and held
    attacks_earlier: int = 0
    exception_bound: float | None = None  # 95 % bound on the share of exceptions among earlier shapes: 3/N


@dataclass(frozen=True)
class RuleReport:
    """The rule of one outcome (and signature). `text` in words, `expression` in the case language, `form` as a tree.

    `unless` names the outcomes that win where both rules hold. `failing` counts the legal shapes the rule predicts.
    `complete` says that every legal shape was run, often enough to say what it does, and agrees. `confidence` is the
    posterior of this behaviour within the vocabulary, given that the true rule is in it.
    """

    outcome: str
    signature: str | None
    text: str
    expression: str
    form: Mapping[str, Any]
    failing: int
    confidence: float
    complete: bool
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rival:
    """Another rule that fits everything seen. `shape` would tell them apart: a legal shape not run (`legal`), or one
    outside the sweep. None: they agree on the legal shapes, and the search knows no shape outside (a derived quantity
    is known at the legal shapes only)."""

    outcome: str
    text: str
    expression: str
    shape: Mapping[str, Scalar] | None
    legal: bool


@dataclass(frozen=True)
class Smallest:
    """The smallest failing shape: each axis, in declared order, towards its smallest value. `minimal` says that every
    one-step-smaller neighbour was run, often enough to say so, and passes; `met` names other faults that shrinking ran
    into."""

    index: int
    shape: Mapping[str, Scalar]
    minimal: bool
    met: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShapeRuns:
    """One shape (its index in sweep order) alone in `runs` fresh processes: it failed in `fails` of them."""

    shape: int
    fails: int
    runs: int


@dataclass(frozen=True)
class Rate:
    """How often failing shapes fail in one fresh process: `fails` of `runs`, over all shapes of `each` together, with
    its 95 % interval (Clopper–Pearson), which takes them to have one rate.

    `repeats`: the first failure of each shape, which was looked for, is left out of `fails` and `runs` (`each` has it);
    otherwise the shapes are those that the rule names, failed or not. `flaky` only where one shape both failed and
    passed alone. `whatever_the_shape`: no shape structure was found."""

    flaky: bool
    fails: int
    runs: int
    rate: float
    low: float
    high: float
    whatever_the_shape: bool = False
    repeats: bool = True
    each: tuple[ShapeRuns, ...] = ()


@dataclass(frozen=True)
class OrderDependence:
    """A shape that fails in a process after others and passes alone, or the reverse. `sequence` is the shortest one
    found that triggers it (its last shape is the one that changes); `text` names the pattern."""

    kind: str  # "fails-after", "fails-only-first", "fails-from-the-kth", "independent"
    text: str
    sequence: tuple[int, ...] = ()
    shapes: tuple[Mapping[str, Scalar], ...] = ()
    minimal: bool = False
    kth: int | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Effort:
    """Processes spent by purpose. `bits` is what the rule costs to name under the declared prior, −log2 of its weight
    (no search that asks yes/no questions can do better on average); with a flaky fault, divided by the channel's
    capacity."""

    by_purpose: Mapping[str, int]
    to_the_answer: int
    bits: float | None = None


@dataclass(frozen=True)
class Answer:
    """The answer of a search over one sweep, re-derivable from its observations alone.

    `first` is the index of the first failing shape in sweep order that is known, with `claim`, `confidence` and the
    counts behind them; `predicted` has, for each legal shape, the outcome (and signature) that the evidence or the
    rules give it, None where nothing does.
    """

    strategy: str
    claim: Claim
    confidence: float
    claim_text: str
    counts: Counts
    effort: Effort
    first: int | None = None
    first_shape: Mapping[str, Scalar] | None = None
    first_outcome: str | None = None
    first_signature: str | None = None
    last_pass: int | None = None  # the nearest passing shape before the first failing one
    rules: tuple[RuleReport, ...] = ()
    rule_note: str = ""  # "no rule fits", or what the rules leave open
    rivals: tuple[Rival, ...] = ()
    smallest: Smallest | None = None
    rate: Rate | None = None
    order: OrderDependence | None = None
    axes_without_effect: tuple[str, ...] = ()
    exceptions: tuple[int, ...] = ()  # shapes that go against an otherwise good rule
    contradictions: tuple[str, ...] = ()
    passed_too_seldom: tuple[int, ...] = ()  # shapes that only passed, in too few runs to count as passing (flaky)
    warnings: tuple[str, ...] = ()
    predicted: tuple[str | None, ...] = field(default=(), repr=False)
    partial_ok: bool = False

    @property
    def exit_code(self) -> int:
        """1 a failure was found; 0 all shapes were run and pass (or partial_ok); 3 otherwise."""
        if self.first is not None or (self.order is not None and self.order.kind != "independent"):
            return EXIT_FOUND
        if self.counts.run == self.counts.shapes or (self.partial_ok and self.counts.run > 0):
            return EXIT_CLEAN
        return EXIT_UNDECIDED

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `predicted` is left out (null) where it is longer than 5000 shapes."""
        data = asdict(self)
        data["claim"] = self.claim.value
        data["exit_code"] = self.exit_code
        if len(self.predicted) > LONGEST_PREDICTION:
            data["predicted"] = None
        return data
