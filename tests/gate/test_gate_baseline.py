"""The baseline file: what is wrong is said with its line, edits keep comments and order, signatures match."""

from __future__ import annotations

import dataclasses
import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from gate_kit import PASS, TODAY, case_run, crash, flaky, known, seen, simulate, verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.comments import CommentedMap

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import Baseline, BaselineModel, EntryModel, load_document, parse_baseline, round_trip
from cudadiag.gate.decide import decide
from cudadiag.gate.edit import Why, edited, why_of
from cudadiag.gate.matching import Match, match
from cudadiag.gate.rates import passes_needed
from cudadiag.gate.yamledit import SequenceEdit
from cudadiag.model import FaultKind, Outcome, Verdict
from cudadiag.signature import signature

PATH = Path("baseline.yaml")
WHY = Why("scratch too small", "mb", "https://example.org/8", datetime.date(2026, 9, 1))
COMMENTED = """\
# Known crashes of the kernels team.
version: 1

known:
  # the oldest one
  - case: 'c'   # quoted on purpose
    rule: n >= 5
    signature: v1/fault/memory-access/attn
    reason: >-
      a reason that is folded
      over two lines
    owner: mb
    issue: https://example.org/7   # the tracker
    expires: 2027-01-01
    rate: 1
  # the second
  - case: d
    shapes: [{n: 5}, {n: 6}]
    signature: [v1/hang/-, v1/wrong/-]
    owner: cd
    issue: https://example.org/9
    reason: hangs
    expires: 2027-01-01

# nothing below
"""


def test_a_baseline_as_people_write_it_is_read() -> None:
    baseline = parse_baseline(COMMENTED, PATH)
    first, second = baseline.entries
    assert (first.line, first.where, str(first.rate), first.expires) == (6, "n >= 5", "1", datetime.date(2027, 1, 1))
    assert first.reason == "a reason that is folded over two lines"
    assert second.where == "n=5 or n=6"
    assert second.rate is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    owner: mb\n", "", "baseline.yaml:6: known.1.owner: needed, and not there"),
        ("rate: 1", "rate: 0", "baseline.yaml:15: known.1.rate: 0 is no rate"),
        ("rate: 1", "rate: 5/4", "is no rate"),
        ("rate: 1", "rate: yes", "is no rate"),
        ("rule: n >= 5", "rule: n >=", "baseline.yaml:7: known.1.rule: the rule 'n >='"),
        ("rule: n >= 5", "rules: n >= 5", "baseline.yaml:7: known.1.rules: unknown key"),
        ("    rule: n >= 5\n", "", "needs exactly one of `rule` and `shapes`"),
        ("expires: 2027-01-01\n    rate", "expires: someday\n    rate", "baseline.yaml:14: known.1.expires"),
        ("signature: v1/fault", "signature: fault", "is no signature of version 1"),
        ("version: 1", "version: 2", "baseline.yaml:2: version"),
        ("    owner: mb\n", "    owner: mb\n    owner: xy\n", "duplicate key"),
        ("known:\n", "known: [\n", "baseline.yaml:"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, message: str) -> None:
    assert old in COMMENTED
    with pytest.raises(UsageError) as caught:
        parse_baseline(COMMENTED.replace(old, new, 1), PATH)
    assert message in caught.value.message


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="versionknow:1-[]{}\n #&*!|>'\"", max_size=80))
def test_any_text_is_a_baseline_or_wrong_use(text: str) -> None:
    try:
        parse_baseline(text, PATH)
    except UsageError:
        pass


@pytest.mark.parametrize("text", ["", "# only a comment\n", "version: 1\n", "version: 1\nknown: []\n"])
def test_an_empty_baseline_knows_nothing(text: str) -> None:
    assert parse_baseline(text, PATH).entries == ()


def test_merged_signatures_are_one_crash() -> None:
    text = COMMENTED + "merge:\n  - {name: overrun, signatures: [v1/fault/memory-access/attn, v1/wrong/-]}\n"
    baseline = parse_baseline(text, PATH)
    wrong = signature(Verdict(Outcome.WRONG, "differs"))
    assert wrong is not None
    assert match(baseline.entries[0], wrong, baseline.judgements) is Match.SAME
    assert match(baseline.entries[0], wrong, Baseline().judgements) is Match.NO


@pytest.mark.parametrize(
    ("name", "verdict", "expected"),
    [
        ("v1/fault/memory-access/attn", crash(), Match.SAME),
        ("v1/fault/out-of-bounds/write/global/attn/attn.cu:41", crash(), Match.SAME),
        ("v1/fault/out-of-bounds/write/global/attn/attn.cu:42", crash(), Match.NO),
        ("v1/fault/out-of-bounds/write/global/attn/-", crash(), Match.MAYBE),
        ("v1/fault/memory-access/attn", crash(kind=FaultKind.ILLEGAL_ADDRESS), Match.SAME),
        ("v1/fault/memory-access/-", crash(), Match.MAYBE),
        ("v1/fault/memory-access/attn", crash(None, FaultKind.ILLEGAL_ADDRESS), Match.MAYBE),
        ("v1/fault/out-of-bounds/write/global/attn/attn.cu:41", crash(None, FaultKind.ILLEGAL_ADDRESS), Match.NO),
        ("v1/fault/memory-access/attn", crash("other"), Match.NO),
        ("v1/fault/misaligned-address/attn", crash(), Match.NO),
        ("v1/hang/-", Verdict(Outcome.HANG, "late"), Match.SAME),
        ("v1/hang/-", crash(), Match.NO),
    ],
)
def test_signatures_match_where_nothing_known_contradicts(name: str, verdict: Verdict, expected: Match) -> None:
    (entry,) = known(signature=name).entries
    found = signature(verdict)
    assert found is not None
    assert match(entry, found, Baseline().judgements) is expected


def test_an_update_keeps_comments_order_quotes_and_what_it_does_not_touch() -> None:
    baseline = parse_baseline(COMMENTED, PATH)
    run, _ = simulate(case_run(0, 9), baseline, lambda i: crash() if i >= 5 else crash("other") if i == 0 else PASS)
    findings = decide([run], baseline, TODAY, all_cases=False)
    edit = edited(COMMENTED, PATH, [run], findings, WHY)
    assert edit.text.startswith(COMMENTED[: COMMENTED.index("\n# nothing below")])
    assert "# nothing below" in edit.text
    new = parse_baseline(edit.text, PATH).entries[2]
    assert (new.case, new.where, new.signatures) == ("c", "n=0", ("v1/fault/memory-access/other",))
    assert (new.owner, new.expires, str(new.rate), new.device) == ("mb", WHY.expires, "4/4", "none")


def test_after_an_update_the_same_run_is_zero_and_its_neighbours_too() -> None:
    def fails(index: int) -> Verdict:
        return crash() if index in (7, 8, 9) else PASS

    run, _ = simulate(case_run(0, 9), Baseline(), fails)
    edit = edited("", PATH, [run], decide([run], Baseline(), TODAY, all_cases=True), WHY)
    baseline = parse_baseline(edit.text, PATH)
    assert baseline.entries[0].where == "n=7 or n=8 or n=9"
    code, findings = verdict_of(case_run(*range(10)), baseline, fails)
    assert (code, [f.status.value for f in findings]) == (0, ["known"])


def test_a_crash_whose_extent_is_not_known_enters_for_any_shape_and_says_so() -> None:
    run = dataclasses.replace(case_run(0, 9), seen=(seen(0, PASS), seen(9, crash())))
    edit = edited("", PATH, [run], decide([run], Baseline(), TODAY, all_cases=True), WHY)
    assert parse_baseline(edit.text, PATH).entries[0].where == "any shape"
    assert "cudadiag bisect" in edit.done[0]


def test_fixed_and_vanished_entries_go_and_expired_ones_stay() -> None:
    baseline = parse_baseline(COMMENTED, PATH)
    run, _ = simulate(case_run(0, 9), baseline, lambda _: PASS)
    findings = decide([run], baseline, datetime.date(2030, 1, 1), all_cases=True)
    assert {f.status.value for f in findings} == {"fixed", "vanished"}
    edit = edited(COMMENTED, PATH, [run], findings, None)
    assert parse_baseline(edit.text, PATH).entries == ()
    late = decide(
        [simulate(case_run(9), baseline, lambda _: crash())[0]], baseline, datetime.date(2030, 1, 1), all_cases=False
    )
    assert edited(COMMENTED, PATH, [run], late, WHY).text == COMMENTED


def test_the_entry_that_stays_keeps_its_comment_when_another_goes() -> None:
    baseline = parse_baseline(COMMENTED, PATH)
    run, _ = simulate(case_run(0, 9), baseline, lambda _: PASS)
    edit = edited(COMMENTED, PATH, [run], decide([run], baseline, TODAY, all_cases=False), None)
    assert [entry.case for entry in parse_baseline(edit.text, PATH).entries] == ["d"]
    assert "# the second\n  - case: d" in edit.text


def test_a_flaky_crash_without_a_rate_gets_the_counted_one() -> None:
    text = COMMENTED.replace("    rate: 1\n", "")
    baseline = parse_baseline(text, PATH)
    for seed in range(20):
        run, _ = simulate(case_run(9, 9, 9, 9, 9), baseline, flaky(0.5, seed, lambda i: i == 9, crash()))
        findings = decide([run], baseline, TODAY, all_cases=False)
        if findings[0].status.value == "flaky" and findings[0].fails:
            edit = edited(text, PATH, [run], findings, None)
            rate = parse_baseline(edit.text, PATH).entries[0].rate
            assert rate is not None
            assert (rate.fails, rate.runs) == (findings[0].fails, findings[0].runs)
            return
    pytest.fail("no seed was flaky")


def test_a_new_crash_enters_only_with_a_reason_an_owner_and_an_issue() -> None:
    run, _ = simulate(case_run(0, 9), Baseline(), lambda i: crash() if i > 5 else PASS)
    findings = decide([run], Baseline(), TODAY, all_cases=True)
    assert edited("", PATH, [run], findings, None).done == ()
    with pytest.raises(UsageError, match="--owner and --issue"):
        why_of("a reason", None, None, None, TODAY)
    with pytest.raises(UsageError, match="--expires"):
        why_of("a", "b", "c", "soon", TODAY)
    why = why_of("a", "b", "c", None, TODAY)
    assert why is not None
    assert why.expires == datetime.date(2026, 8, 30)


PAGE = Path(__file__).parents[2] / "docs/reference/gate-baseline.md"


def test_the_reference_page_has_every_key_in_the_models_words() -> None:
    page = PAGE.read_text()
    for model in (BaselineModel, EntryModel):
        for name, key in model.model_fields.items():
            needed = "**needed**" if key.is_required() else ""
            row = re.search(rf"^\| `{name}` \| {re.escape(needed)} ?\| (.*) \|$", page, re.MULTILINE)
            assert row, name
            assert row[1].replace("`", "").startswith((key.description or "?").replace("`", ""))


def test_the_reference_pages_example_is_a_baseline_and_its_rates_are_real() -> None:
    page = PAGE.read_text()
    first, second = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(parse_baseline(first, PATH).entries) == 1
    parse_baseline(first + second, PATH)
    rows = re.findall(r"^\| (?:`([\d./]+)`|none) \| (\d+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for text, passes in rows:
        more = f"rate: {text}" if text else ""
        assert passes_needed(known(more=more).entries[0].measured) == int(passes), text


def shifted(text: str) -> str:
    """The same with the dashes at the left margin."""
    lines = text.splitlines(keepends=True)
    return "".join(line[2:] if line.startswith("  ") else line for line in lines)


LAYOUTS = [COMMENTED, COMMENTED.replace("\n  - case", "\n  -\n    case"), shifted(COMMENTED), COMMENTED.rstrip("\n")]
TEXTS = st.sampled_from(LAYOUTS)
EDITS = st.sampled_from(["remove 0", "remove 1", "rate 0", "rate 1", "signature 0", "signature 1", "add"])


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.lists(EDITS, max_size=5, unique=True))
def test_any_edits_leave_every_other_line_as_it_was(text: str, edits: list[str]) -> None:
    """Edits of one entry never touch the lines of the other, whatever the layout of the file."""
    document = load_document(text, PATH)
    editing = SequenceEdit(text, document, "known", round_trip())
    removed = {edit.split()[1] for edit in edits if edit.startswith("remove")}
    done = [edit for edit in edits if edit.startswith("remove") or edit == "add" or edit.split()[1] not in removed]
    for edit in done:
        word, _, place = edit.partition(" ")
        if word == "remove":
            editing.remove(int(place))
        elif word == "add":
            editing.append(CommentedMap(plain(document["known"][1], case="added")))
        else:
            editing.set(int(place), word, "1/2" if word == "rate" else ["v1/hang/-"])
    entries = parse_baseline(editing.text(), PATH).entries
    expected = [case for number, case in enumerate("cd") if str(number) not in removed] + ["added"] * ("add" in done)
    assert [entry.case for entry in entries] == expected
    for entry in entries:
        place = "cd".find(entry.case)
        if place >= 0:
            assert str(entry.rate) == ("1/2" if f"rate {place}" in done else ["1", "None"][place])
            assert (entry.signatures == ("v1/hang/-",)) is (f"signature {place}" in done)
    kept = [line for line in text.splitlines() if not re.search(r"rate:|signature:", line)]
    if not removed:
        assert all(line in editing.text().splitlines() for line in kept)


def plain(entry: Any, **more: str) -> dict[str, Any]:
    return {**{key: entry[key] for key in entry}, **more}


def test_a_crash_of_a_named_group_enters_under_a_signature_not_under_the_name() -> None:
    text = COMMENTED + "merge:\n  - {name: overrun, signatures: [v1/fault/memory-access/other, v1/wrong/-]}\n"
    baseline = parse_baseline(text, PATH)
    for first in (0, 5):  # outside the known crash: new; inside: changed
        run, _ = simulate(case_run(0, 5, 9), baseline, lambda i, first=first: crash("other") if i == first else PASS)
        edit = edited(text, PATH, [run], decide([run], baseline, TODAY, all_cases=False), WHY)
        entries = parse_baseline(edit.text, PATH).entries
        assert entries[-1 if first == 0 else 0].signatures[-1] == "v1/fault/out-of-bounds/write/global/other/attn.cu:41"
