"""Rules in the case's own words: names are named where the evidence speaks for them, and cost nothing where not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml
from simulated import kernel, load, search

from cudadiag.search import Settings

HERE = Path(__file__).parent
ENTRIES: list[dict[str, Any]] = yaml.safe_load((HERE / "named_rules.yaml").read_text(encoding="utf-8"))["rules"]
UNRELATED = {"heads": 64, "latent": 512, "MAX_LEN": 4096, "LIMIT": 1000, "BLOCK": 128, "TILE": 16, "SLOTS": 3000}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["id"]))
def test_the_rule_is_said_as_an_engineer_would(entry: dict[str, Any]) -> None:
    subject = kernel(entry)
    for seed in range(2):
        found, _ = search(subject, Settings(seed=seed))
        assert [rule.expression for rule in found.rules] == [entry["says"]]
        assert found.first == subject.first
        assert found.predicted == subject.truth


def test_names_that_have_nothing_to_do_with_the_rule_cost_nothing() -> None:
    plain: list[int] = []
    told: list[int] = []
    for subject in load(HERE / "rules.yaml"):
        if subject.rate < 1 or subject.stateful or len(subject.sweep) > 80:
            continue
        named = replace(subject, sweep=replace(subject.sweep, constants=UNRELATED))
        for case, probes in ((subject, plain), (named, told)):
            found, _ = search(case, Settings(seed=3))
            assert found.first == subject.first, subject.name
            assert found.predicted == subject.truth, subject.name
            probes.append(found.effort.to_the_answer)
    assert len(told) > 20
    assert mean(told) <= 1.05 * mean(plain)
