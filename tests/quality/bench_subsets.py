"""Outside the vocabulary: random failing sets, which no rule describes. How often is something false claimed?

python tests/quality/bench_subsets.py [--count 500] [--seed 0]

Every second sweep starts with a stretch of passing shapes too long to prove, so that a rule could be `implied`; the
others have failing shapes anywhere. Density 0.25 to 0.75. Exit status 1 where `proven` was false once or `implied` in
over 2 %.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from itertools import product

from simulated import Kernel, search

from cudadiag.model import Axis, Claim, Outcome, Sweep
from cudadiag.search import Settings

AXES = (
    (Axis("a", tuple(range(1, 25))), Axis("b", tuple(range(1, 13)))),
    (Axis("a", (1, 2, 3, 4, 6, 8, 12, 16)), Axis("b", (8, 16, 24, 32, 48)), Axis("c", (1, 2, 3, 4, 5, 6, 7, 8))),
)


class Subset(Kernel):
    """A kernel that fails at a random set of shapes."""

    def outcome(self, index: int, earlier: object) -> Outcome:
        return Outcome.FAULT if self.shapes[index]["fails"] else Outcome.PASS


def subset(seed: int) -> Subset:
    """The failing set of a seed; odd seeds have a stretch of at least 80 passing shapes first."""
    dice = random.Random(seed)
    axes = AXES[seed // 2 % len(AXES)]
    shapes = tuple(product(*(a.values for a in axes)))
    density = dice.uniform(0.25, 0.75)
    start = dice.randint(80, len(shapes) - 80) if seed % 2 else 0
    fails = [{"fails": i >= start and dice.random() < density} for i in range(len(shapes))]
    return Subset(f"subset-{seed}", Sweep(axes, shapes), (), shapes=fails)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    ends: Counter[str] = Counter()
    false: Counter[Claim] = Counter()
    for seed in range(options.seed, options.seed + options.count):
        kernel = subset(seed)
        found, _ = search(kernel, Settings(seed=seed))
        right = found.first == kernel.first
        rule = "a rule" if found.rules else "a rule with exceptions" if found.exceptions else "no rule fits"
        ends[f"{found.claim.value}, {rule}, first {'right' if right else 'not the true one'}"] += 1
        false[found.claim] += not right
    for end, count in ends.most_common():
        print(f"{count:5d}  {end}")
    share = false[Claim.IMPLIED] / max(1, options.count)
    print(f"proven and false: {false[Claim.PROVEN]}; implied and false: {false[Claim.IMPLIED]} ({share:.1%})")
    return 1 if false[Claim.PROVEN] or share > 0.02 else 0


if __name__ == "__main__":
    sys.exit(main())
