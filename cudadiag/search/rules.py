"""The strategy `rules`: screen, measure the rate, halve the version space, attack what is left, prove, minimise,
confirm.

Every stage is a question to the evidence alone, so a refuted rule leads back to halving by itself, and a resumed run
goes on where it stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Sweep
from cudadiag.search import closing
from cudadiag.search.belief import PASS, Belief, believe
from cudadiag.search.choose import choose, entropy
from cudadiag.search.conclusion import Conclusion, conclude
from cudadiag.search.expr import words
from cudadiag.search.observation import Observation, Probe, Purpose
from cudadiag.search.rate import FLAKY_SHARE
from cudadiag.search.report import label_text, neighbours_below, smallest, smallest_of
from cudadiag.search.screen import screen_order
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Tally
from cudadiag.search.target import Noise
from cudadiag.search.vocabulary import Vocabulary, vocabulary

RIVAL = "rival"
"""Tag of an attack aimed at what is left of the rivals; it is no random sample, so no bound rests on it."""
WORTH_REFUTING = 0.002
"""Share of the belief that must speak against the prediction at a shape for it to be attacked there on purpose."""
SUSPECT = "suspect"
SUSPECTED_RATE = 0.85
"""A rate at which a flaky fault is hardest to notice: it mostly fails all the repeats, and still passes one run in
seven."""
SUSPECTS, WORTH_REPEATING = 6, 0.001
"""Passing shapes run once more at most, and the chance to be failing from which one is, where one fault in ten is
flaky."""
MOST_FLAKY = 400
"""Runs after which halving under noise stops, whatever is left."""


@dataclass(frozen=True)
class Wanted:
    """The probes of one stage, in words."""

    probes: list[Probe]
    doing: str


class RuleSearch:
    """The state of a search, worked out from its observations; nothing is kept between two calls."""

    def __init__(self, sweep: Sweep, observations: Sequence[Observation], tally: Tally, settings: Settings) -> None:
        self.sweep, self.observations, self.tally, self.settings = sweep, observations, tally, settings
        self.untested: NDArray[np.bool_] = (tally.passes + tally.fails == 0) & tally.runnable(settings)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return vocabulary(self.sweep)

    @cached_property
    def belief(self) -> Belief:
        return believe(self.vocabulary, self.tally)

    @cached_property
    def conclusion(self) -> Conclusion | None:
        return conclude(self.belief) if self.tally.first is not None else None

    @property
    def predicted_failing(self) -> NDArray[np.bool_]:
        """Shapes that fail, or would by the likeliest rules."""
        found = self.conclusion
        return self.tally.failing if found is None else self.tally.failing | (found.predicted != PASS)

    @property
    def best(self) -> tuple[str, ...]:
        """The likeliest rules in words, for a live view."""
        found = self.conclusion
        if found is None:
            return ()
        return tuple(f"{label_text(found.belief.labels[label])} where {words(rule)}" for label, rule in found.rules)

    def generator(self, *key: int) -> np.random.Generator:
        """Seeded by the settings and by how much is known, so that the same evidence always draws the same."""
        return np.random.default_rng([self.settings.seed, len(self.observations), *key])

    @property
    def settled(self) -> bool:
        """Whether the belief has come down to one prediction."""
        found = self.conclusion
        return found is not None and found.certainty >= self.settings.confidence

    def next(self) -> Wanted:
        """The first stage that wants something."""
        if self.tally.first is None:
            return self._screen()
        for stage in (
            self._rate,
            self._halve,
            self._attack_rivals,
            self._attack_earlier,
            self._prove,
            self._attack_elsewhere,
            self._finish_table,
            self._minimise,
            self._confirm,
        ):
            wanted = stage()
            if wanted.probes:
                return wanted
        return Wanted([], "finished")

    def _screen(self) -> Wanted:
        """Claim: none-found, honest about how many were run. Runs what is left where that is cheap."""
        left, run = int(self.untested.sum()), int(self.tally.passing.sum())
        if not left:
            return self._again()
        if run >= self.settings.screen_probes and not closing.is_cheap(left, self.tally, self.settings):
            return Wanted([], "finished")
        if closing.is_cheap(left, self.tally, self.settings) and run >= self.settings.screen_probes:
            left_over = np.flatnonzero(self.untested)[: self.settings.parallelism]
            return Wanted(self._probes(left_over, Purpose.SCREEN), "running the shapes left")
        order = screen_order(self.vocabulary, self.tally, self.settings.parallelism, self.generator(1))
        chosen = [i for i in order if self.untested[i]] or np.flatnonzero(self.untested).tolist()
        return Wanted(self._probes(chosen, Purpose.SCREEN), "looking for a failing shape")

    def _again(self) -> Wanted:
        """Everything passed once: a few shapes once more, spread over the sweep, because a flaky fault may have
        hidden."""
        spent = sum(o.purpose is Purpose.CONFIRM for o in self.observations)
        again = np.flatnonzero(self.tally.passing & self.tally.runnable(self.settings))
        wanted = closing.worthwhile(self.tally.mean_cost_s, self.settings, self.settings.confirm_repeats)
        if spent >= wanted or not again.size:
            return Wanted([], "finished")
        order = np.random.default_rng([self.settings.seed, 6]).permutation(again)
        drawn = order[np.arange(spent, wanted) % len(order)]
        return Wanted(self._probes(drawn, Purpose.CONFIRM), "all pass: running some once more")

    def _rate(self) -> Wanted:
        return Wanted(closing.rate_probes(self.tally, self.settings), "measuring how often a failing shape fails")

    def _halve(self) -> Wanted:
        """Claim: none by itself; one prediction holds the stated share of the belief. See choose.choose for the
        cost."""
        doing = "halving the rules that fit"
        found = self.conclusion
        if found is None or self._tired():
            return Wanted([], doing)
        if not self.settled:
            chosen = self._disagreements(found)
            if chosen:
                return Wanted(chosen, doing)
        first = found.first
        if first is not None and first < (self.tally.first or 0) and self.open_shapes[first]:
            return Wanted(
                [Probe(first, Purpose.HALVE, expected=self._expected(first))],
                "running the shape predicted to fail first",
            )
        return Wanted([], doing)

    def _tired(self) -> bool:
        return self.tally.flaky and sum(o.purpose is Purpose.HALVE for o in self.observations) >= MOST_FLAKY

    @cached_property
    def open_shapes(self) -> NDArray[np.bool_]:
        """Shapes that a run can still teach about: untested, or passing so far under a flaky fault."""
        if not self.tally.flaky:
            return self.untested
        return ~self.tally.failing & self.tally.runnable(self.settings)

    def _disagreements(self, found: Conclusion) -> list[Probe]:
        columns = self.belief.table.shapes
        chosen = choose(
            self.belief, self.tally, self.open_shapes[columns], self.settings.parallelism, self.generator(2)
        )
        shapes = [int(columns[c.column]) for c in chosen]
        if found.split is not None and self.open_shapes[found.split]:
            doubt = np.array([found.doubt, 1 - found.doubt])
            if not chosen or entropy(doubt).sum() >= chosen[0].gain:
                shapes = [found.split, *shapes]
        return self._probes(shapes, Purpose.HALVE)

    def _attack_rivals(self) -> Wanted:
        """Runs the shapes at which most of what is left of the belief speaks against the prediction, up to half the
        attacks."""
        doing = "attacking the rule where rivals differ"
        found = self.conclusion
        spent = sum(o.purpose is Purpose.ATTACK and o.tag == RIVAL for o in self.observations)
        if found is None or self.tally.flaky or spent >= self.settings.attacks // 2:
            return Wanted([], doing)
        columns = self.belief.table.shapes
        chances, expected = self.belief.chances, found.predicted[columns]
        agree = np.where(expected == PASS, 1 - chances.sum(axis=0), 0.0)
        for label in range(len(chances)):
            agree = np.where(expected == label, chances[label], agree)
        doubt = np.where(self.untested[columns], 1 - agree, 0.0)
        worst = int(doubt.argmax())
        if doubt[worst] < WORTH_REFUTING:
            return Wanted([], doing)
        return Wanted(self._probes([int(columns[worst])], Purpose.ATTACK, RIVAL), doing)

    def attacks(self, fingerprint: str) -> NDArray[np.int64]:
        """The shapes at which this prediction was attacked at random; a shape is there twice only under a flaky
        fault."""
        hit = [
            o.shape
            for o in self.observations
            if o.purpose is Purpose.ATTACK and o.tag == fingerprint and o.outcome.is_evidence
        ]
        return np.array(sorted(hit), dtype=np.int64)

    def _attack_earlier(self) -> Wanted:
        """Random untested earlier shapes, where running all of them is not cheap; under a flaky fault any earlier ones.

        Claim: `implied`, with at most 3/N of the earlier shapes going against it (95 %). Assumes nothing but that the
        draw is fair. Costs `attacks` probes."""
        found, first = self.conclusion, self.tally.first or 0
        if found is None or closing.is_cheap(self._proof_cost, self.tally, self.settings):
            return Wanted([], "")
        done = int((self.attacks(found.fingerprint) < first).sum())
        return self._draw(np.flatnonzero(self.open_shapes[:first]), self.settings.attacks - done, found)

    def _attack_elsewhere(self) -> Wanted:
        """Random untested shapes later in the sweep, half of them where the rule says fail, half where it says pass."""
        found, first = self.conclusion, self.tally.first or 0
        if found is None:
            return Wanted([], "")
        done = self.attacks(found.fingerprint)
        done = done[done >= first]
        each = math.ceil(self.settings.attacks / 4)
        later = self.untested.copy()
        later[:first] = False
        fails = found.predicted != PASS
        kinds = [later & ~fails] if self.tally.flaky else [later & fails, later & ~fails]
        for kind in kinds:
            spent = int((fails[done] == fails[np.flatnonzero(kind)[0]]).sum()) if kind.any() else 0
            wanted = self._draw(np.flatnonzero(kind), each - spent, found)
            if wanted.probes:
                return wanted
        return Wanted([], "")

    def _draw(self, candidates: NDArray[np.int64], missing: int, found: Conclusion) -> Wanted:
        count = min(missing, len(candidates), self.settings.parallelism)
        if count <= 0:
            return Wanted([], "")
        drawn = self.generator(3).choice(candidates, size=count, replace=False)
        return Wanted(
            self._probes(drawn.tolist(), Purpose.ATTACK, found.fingerprint), "attacking the rule at random shapes"
        )

    @cached_property
    def _proof_cost(self) -> int:
        return int(closing.unproven(self.tally, self.tally.first or 0, self.settings).sum())

    def _prove(self) -> Wanted:
        """All earlier shapes where that is cheap (or asked for); where no rule fits, as many as are cheap, at
        random."""
        first = self.tally.first or 0
        if closing.is_cheap(self._proof_cost, self.tally, self.settings):
            return Wanted(closing.proof_probes(self.tally, first, self.settings), "running the earlier shapes left")
        spent = sum(o.purpose is Purpose.PROVE for o in self.observations)
        if self.conclusion is not None or spent >= self.settings.cheap_probes:
            return Wanted([], "")
        drawn = closing.proof_probes(self.tally, first, self.settings, self.generator(4))
        return Wanted(drawn, "no rule fits: running earlier shapes at random")

    def _finish_table(self) -> Wanted:
        """Where no rule fits, the exact table is the answer, if it is cheap."""
        if self.conclusion is not None or not closing.is_cheap(int(self.untested.sum()), self.tally, self.settings):
            return Wanted([], "")
        return Wanted(
            self._probes(np.flatnonzero(self.untested), Purpose.PROVE), "no rule fits: running the shapes left"
        )

    def _minimise(self) -> Wanted:
        doing = "making the failing shape smaller"
        first = self.tally.first or 0
        if self.conclusion is not None:
            label = self.conclusion.predicted[first]
            alike = (self.conclusion.predicted == label) if label != PASS else self.tally.failing
            target = smallest_of(self.sweep, first, alike | (np.arange(len(alike)) == first))
            if self.untested[target]:
                return Wanted(self._probes([target], Purpose.MINIMISE), doing)
        found = smallest(self.sweep, self.tally)
        below = [] if found is None else neighbours_below(self.sweep, found.index)
        return Wanted(self._probes([i for i in below if self.untested[i]], Purpose.MINIMISE), doing)

    def _confirm(self) -> Wanted:
        probes = closing.confirm_probes(self.tally, self.tally.first or 0, self.settings)
        if probes:
            return Wanted(probes, "repeating the failing shape")
        return Wanted(self._suspicious(), "repeating passes that another rule would call lucky")

    def _suspicious(self) -> list[Probe]:
        """Single passes that would be failing shapes if the fault were flaky after all: another run of each.

        The repeats of failing shapes leave a fault that passes now and then a chance to hide, and it misleads only
        where it hid at a shape that decides. Costs at most SUSPECTS probes; a fault that never passed so far only."""
        spent = sum(o.purpose is Purpose.CONFIRM and o.tag == SUSPECT for o in self.observations)
        if self.tally.flaky or self.conclusion is None or not self.settings.confirm_repeats or spent >= SUSPECTS:
            return []
        belief = believe(self.vocabulary, self.tally, Noise.known(SUSPECTED_RATE))
        if belief.empty:
            return []
        columns = belief.table.shapes
        once = (self.tally.passes[columns] == 1) & (self.tally.fails[columns] == 0)
        doubt = np.where(once & self.tally.runnable(self.settings)[columns], belief.chances.sum(axis=0), 0.0)
        worst = int(doubt.argmax())
        if doubt[worst] * self.settings.flaky_share < WORTH_REPEATING * FLAKY_SHARE:
            return []
        return [Probe(int(columns[worst]), Purpose.CONFIRM, tag=SUSPECT, expected="pass")]

    def _expected(self, shape: int) -> str | None:
        if self.conclusion is None:
            return None
        label = int(self.conclusion.predicted[shape])
        return "pass" if label == PASS else label_text(self.belief.labels[label])

    def _probes(self, shapes: Sequence[int] | NDArray[np.int64], purpose: Purpose, tag: str = "") -> list[Probe]:
        return [Probe(int(i), purpose, tag=tag, expected=self._expected(int(i))) for i in shapes]
