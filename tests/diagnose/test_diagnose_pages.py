"""Every explanation has its page, and the page says what the program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadiag.diagnose.explanations import EXPLANATIONS
from cudadiag.diagnose.interface import Explanation

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/explanation/explanations"


@pytest.mark.parametrize("explanation", EXPLANATIONS, ids=lambda explanation: explanation.name)
def test_an_explanation_has_a_page_with_its_own_words(explanation: Explanation) -> None:
    text = (ROOT / explanation.docs).read_text()
    assert text.startswith(f"# {explanation.title}\n")
    assert f"**Predicts:** {explanation.predicts}." in text
    for experiment, result in explanation.expects.items():
        assert f"- `{experiment.value}`: {result}" in text
    advice = explanation.advice[0].upper() + explanation.advice[1:]
    assert text.endswith(f"## Next step\n\n{advice}.\n")


def test_the_list_of_pages_is_the_table_in_its_order() -> None:
    rows = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| [")]
    wanted = [f"| [{e.name}]({e.name}.md) | {e.title} | {'yes' if e.competes else 'no'} |" for e in EXPLANATIONS]
    assert rows == wanted
    assert {path.stem for path in FOLDER.glob("*.md")} == {e.name for e in EXPLANATIONS} | {"README"}
