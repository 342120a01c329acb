"""The version space: which rules of one, two and three literals fit the evidence, and how much each weighs.

Source: version-space halving, Nowak, arXiv 0910.4397 and NIPS 2009 for the noisy form; the weights are a prior times
the likelihood under one-sided noise. What is held: all single literals, all pairs with a simple literal (the heaviest
MOST_PAIRS of each kind at a time), and triples of simple literals once the shorter rules fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.expr import ALWAYS, Expr, Op
from cudadiag.search.survivors import RefutedMemo, SurvivorMemo, narrow
from cudadiag.search.table import Indices, Table
from cudadiag.search.target import Floats, Target
from cudadiag.search.valuesets import SetRule, set_rules
from cudadiag.search.vocabulary import Bits

MASS_ONE, MASS_AND, MASS_OR, MASS_THREE = 0.7, 0.15, 0.10, 0.05
MOST_PAIRED = 6000
MOST_PAIRS = 2000
MOST_TRIPLES = 2000
TRIPLE_LITERALS = 120
MIXED_LITERALS = 60
ENOUGH = -25.0
"""Log evidence of the shorter rules below which triples are looked at as well."""


@dataclass(frozen=True)
class Spelling:
    """One rule as written, with its share of all the weight."""

    expr: Expr
    share: float


@dataclass(frozen=True)
class Posterior:
    """The distinct behaviours that fit, likeliest first. Row u: its truth on the table's shapes, its share of the
    weight, and the log prior of its likeliest spelling. `spellings` are those of the first SPELLED rows, likeliest
    first.
    `log_evidence` is the log of all weight together."""

    shares: Floats
    bits: Bits
    log_prior: Floats
    log_evidence: float
    write: Callable[[], tuple[tuple[Spelling, ...], ...]]

    @property
    def empty(self) -> bool:
        return not len(self.shares)

    @cached_property
    def spellings(self) -> tuple[tuple[Spelling, ...], ...]:
        return self.write()

    @property
    def rule(self) -> Expr:
        """The likeliest rule; there must be one."""
        return self.spellings[0][0].expr

    @cached_property
    def votes(self) -> Floats:
        """For each shape of the table the share of rules that hold there."""
        return np.asarray(self.shares.astype(np.float32) @ self.bits, dtype=np.float64)


@dataclass(frozen=True)
class _Rules:
    """Rules by literal rows: shape (count, 1 to 3), with their log prior and log likelihood. `shape` says how
    joined."""

    join: str  # "one", "and", "or", "and3", "or3", "and-or" (a and b) or c, "or-and" (a or b) and c
    rows: NDArray[np.signedinteger[Any]]
    prior: Floats
    likelihood: Floats


def posterior(table: Table, target: Target) -> Posterior:
    """Every rule of the vocabulary that fits, the same behaviour counted once with the weight of all its spellings.

    Claim: none; a rule outside the vocabulary is not here. Costs no probe."""
    refuted: RefutedMemo = table.vocabulary.memo.setdefault("refuted", RefutedMemo())
    plain = len(target.noise.log_likelihood) == 1 and not table.focused
    if plain and refuted.covers(target.fails, target.others):
        return _merge(table, [], [])
    space = _Space(table, target)
    found = [space.ones(), *space.pairs()]
    evidence = _log_sum([np.concatenate([r.prior + r.likelihood for r in found])])
    sets: list[SetRule] = []
    if evidence < ENOUGH:
        found += space.triples()
        sets = set_rules(table, target)
    if plain and not sets and not any(len(r.rows) for r in found):
        refuted.add(target.fails, target.others)
    return _merge(table, [r for r in found if len(r.rows)], sets)


def _log_sum(parts: Sequence[Floats]) -> float:
    values = np.concatenate(parts) if parts else np.empty(0)
    if not values.size:
        return -np.inf
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


class _Space:
    """Literals against one target: `hit[a, k]` literal a at failing shape k, `on[a, k]` at the k-th other shape."""

    def __init__(self, table: Table, target: Target) -> None:
        self.table, self.target, self.likelihood = table, target, target.noise.log_likelihood
        self.runs = target.runs.astype(np.float32)
        self.hit = table.bits[:, table.place[target.fails]]
        self.on = table.bits[:, table.place[target.others]].astype(np.float32)
        self.passes = self.on @ self.runs
        self.covers = np.asarray(self.hit.all(axis=1))
        self.clean = self.fits(self.passes)
        self.log = np.log(table.weights)

    def fits(self, passes: NDArray[Any]) -> Bits:
        """Whether rules that name shapes with so many passing runs are still possible."""
        return np.asarray(passes < len(self.likelihood) - 0.5)

    def rules(self, join: str, rows: NDArray[Any], mass: float, passes: NDArray[Any], most: int = MOST_PAIRS) -> _Rules:
        """Rules with their prior and likelihood, the heaviest of them."""
        prior = np.log(mass) + sum(self.log[rows[:, k]] for k in range(rows.shape[1]))
        likelihood = self.likelihood[np.rint(passes).astype(np.int64)]
        return _heaviest(_Rules(join, rows, np.asarray(prior), likelihood), most)

    def ones(self) -> _Rules:
        rows = np.flatnonzero(self.covers & self.clean)
        return self.rules("one", rows[:, None], MASS_ONE, self.passes[rows], len(rows))

    def pairs(self) -> Iterator[_Rules]:
        plain = len(self.likelihood) == 1 and not self.table.focused
        for join, mass in (("and", MASS_AND), ("or", MASS_OR)):
            usable = np.asarray(self.covers if join == "and" else self.clean)
            if plain:
                rows = self._remembered(join, usable)
                passes: NDArray[Any] = np.zeros(len(rows))
            else:
                rows, passes = self._fitting(join, usable)
            yield self.rules(join, rows, 2 * mass, passes)

    def _fitting(self, join: str, usable: Bits) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Pairs of a literal with a simple one that fit, each once, in the order of their rows; the passing runs they
        name."""
        usable = usable.copy()
        usable[self.table.vocabulary.literals.conditions.index(ALWAYS)] = False  # it adds nothing to another literal
        a, b = np.flatnonzero(usable & self._paired()), np.flatnonzero(usable & self.table.simple)
        passes = (self.on[a] * self.runs) @ self.on[b].T
        if join == "or":
            passes = self.passes[a][:, None] + self.passes[b] - passes
        both_simple = self.table.simple[a][:, None]
        fits = self.fits(passes) & (a[:, None] != b) & (~both_simple | (a[:, None] < b))
        if join == "or":
            missed = (~self.hit[a]).astype(np.float32) @ (~self.hit[b]).T.astype(np.float32)
            fits &= missed < 0.5
        i, j = np.nonzero(fits)
        return np.stack([a[i], b[j]], axis=1).astype(np.int32), passes[i, j]

    def _paired(self) -> Bits:
        """Literals that stand in pairs: the heaviest, all simple ones, and those that the evidence put in focus."""
        paired = self.table.simple.copy()
        paired[:MOST_PAIRED] = True
        paired[len(self.table.vocabulary.literals.weights) :] = True
        return paired

    def _remembered(self, join: str, usable: Bits) -> NDArray[np.int32]:
        memo: SurvivorMemo = self.table.vocabulary.memo.setdefault("pairs", SurvivorMemo())
        fails, others = frozenset(self.target.fails.tolist()), frozenset(self.target.others.tolist())
        known = memo.nearest(join, fails, others)
        if known is None:
            pairs, _ = self._fitting(join, usable)
        else:
            pairs, new_fails, new_others = known
            place = self.table.place
            columns = [[int(place[i]) for i in sorted(new)] for new in (new_fails, new_others)]
            pairs = narrow(join, pairs, self.table.bits, *columns)
        memo.keep(join, fails, others, pairs)
        return pairs

    def triples(self) -> Iterator[_Rules]:
        """From a fixed choice of literals, whatever the evidence: what does not fit now never will."""
        simple = np.flatnonzero(self.table.simple)
        some, few = simple[:TRIPLE_LITERALS], simple[:MIXED_LITERALS]
        yield self._three("and3", *_three_of(some[self.covers[some]]))
        yield self._three("or3", *_three_of(some[self.clean[some]]))
        hitting = few[self.hit[few].any(axis=1)]
        yield self._three("and-or", *_two_and_one(hitting, few[self.clean[few]]))
        yield self._three("or-and", *_two_and_one(hitting, few[self.covers[few]]))

    def _three(self, join: str, a: Indices, b: Indices, c: Indices) -> _Rules:
        keep = np.ones(len(a), dtype=bool)
        for k in range(self.hit.shape[1]):
            keep &= _join(join, self.hit[a, k], self.hit[b, k], self.hit[c, k])
        a, b, c = a[keep], b[keep], c[keep]
        passes = np.zeros(len(a), dtype=np.float32)
        for k in range(self.on.shape[1]):
            on = self.on[:, k] > 0
            passes += _join(join, on[a], on[b], on[c]) * self.runs[k]
        fits = self.fits(passes)
        rows = np.stack([a, b, c], axis=1)[fits]
        return self.rules(join, rows, 6 * MASS_THREE / 4, passes[fits], MOST_TRIPLES)


def _three_of(rows: Indices) -> tuple[Indices, Indices, Indices]:
    n = len(rows)
    i, j, k = np.ogrid[:n, :n, :n]
    a, b, c = np.nonzero((i < j) & (j < k))
    return rows[a], rows[b], rows[c]


def _two_and_one(pair: Indices, one: Indices) -> tuple[Indices, Indices, Indices]:
    i, j, k = np.ogrid[: len(pair), : len(pair), : len(one)]
    a, b, c = np.nonzero(np.broadcast_to(i < j, (len(pair), len(pair), len(one))) & (k >= 0))
    return pair[a], pair[b], one[c]


def _join(join: str, a: Bits, b: Bits, c: Bits) -> Bits:
    match join:
        case "and3":
            joined = a & b & c
        case "or3":
            joined = a | b | c
        case "and-or":
            joined = (a & b) | c
        case _:
            joined = (a | b) & c
    return np.asarray(joined)


def _heaviest(rules: _Rules, most: int) -> _Rules:
    if len(rules.rows) <= most:
        return rules
    weight = rules.prior + rules.likelihood
    least = np.partition(weight, -most)[-most]  # ties at the end of the list all stay: which ones would be arbitrary
    keep = np.flatnonzero(weight >= least)
    return _Rules(rules.join, rules.rows[keep], rules.prior[keep], rules.likelihood[keep])


def _rule_bits(table: Table, rules: _Rules) -> Bits:
    first, *others = (np.asarray(table.bits[rules.rows[:, k]]) for k in range(rules.rows.shape[1]))
    if len(others) == 2:
        return _join(rules.join, first, *others)
    for other in others:
        first = np.asarray(first & other if rules.join == "and" else first | other)
    return first


def _spell(table: Table, join: str, rows: Sequence[int]) -> Expr:
    literals = tuple(table.condition(r) for r in rows)
    match join:
        case "one":
            return literals[0]
        case "and" | "and3":
            return Op("and", literals)
        case "or" | "or3":
            return Op("or", literals)
        case "and-or":
            return Op("or", (Op("and", literals[:2]), literals[2]))
        case _:
            return Op("and", (Op("or", literals[:2]), literals[2]))


SPELLED, SPELLINGS = 8, 48
"""Behaviours that are written out, and how many spellings of each are kept, to be told apart outside the sweep."""


def _merge(table: Table, found: Sequence[_Rules], sets: Sequence[SetRule]) -> Posterior:
    if not found and not sets:
        nothing = np.empty(0)
        return Posterior(nothing, np.empty((0, len(table.shapes)), dtype=bool), nothing, -np.inf, tuple)
    bits = np.concatenate([*(_rule_bits(table, r) for r in found), *(s.bits[None] for s in sets)])
    prior = np.concatenate([*(r.prior for r in found), [s.log_prior for s in sets]])
    weight = np.concatenate([*(r.prior + r.likelihood for r in found), [s.log_weight for s in sets]])

    def spell(member: int) -> Expr:
        for rules in found:
            if member < len(rules.rows):
                return _spell(table, rules.join, rules.rows[member])
            member -= len(rules.rows)
        return sets[member].expr

    _, group = np.unique(_hashes(bits), return_inverse=True)
    relative = np.exp(weight - weight.max())
    shares = np.bincount(group, relative)
    total = shares.sum()
    by_weight = np.argsort(-weight, kind="stable")
    members = by_weight[np.argsort(group[by_weight], kind="stable")]  # grouped, likeliest first within each group
    starts = np.searchsorted(group[members], np.arange(len(shares)))
    best = members[starts]
    order = np.lexsort((best, -shares))

    def write() -> tuple[tuple[Spelling, ...], ...]:
        same = [members[starts[u] :][: np.count_nonzero(group == u)][:SPELLINGS] for u in order[:SPELLED]]
        return tuple(tuple(Spelling(spell(int(m)), float(relative[m] / total)) for m in row) for row in same)

    return Posterior(
        shares=shares[order] / total,
        bits=bits[best[order]],
        log_prior=prior[best[order]],
        log_evidence=float(weight.max() + np.log(total)),
        write=write,
    )


def _hashes(bits: Bits) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's truth: the same for equal rows, whatever else is in the table."""
    packed = np.packbits(bits, axis=1)
    padded = np.zeros((len(bits), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    words = padded.view(np.uint64)
    factors = np.random.default_rng(20).integers(1, 2**63, size=words.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed = words * factors
    mixed ^= mixed >> np.uint64(29)
    return np.asarray((mixed * factors).sum(axis=1, dtype=np.uint64))
