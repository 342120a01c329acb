"""Reading YAML: every place known, every trap an error with advice, no file can hurt."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.case import Case, CaseError, load, load_text
from cudadiag.case.scalars import plain_scalar
from cudadiag.case.yamltext import MAX_BYTES, parse_document

GOOD = b"""\
case: bench
target: {command: [./bench, --n, '{n}']}
sweep: {n: [1, 2, 4]}
"""


def problems(text: str | bytes) -> list[str]:
    """`line:column: message` of everything wrong with a case."""
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(CaseError) as caught:
        load_text(content, Path("x.yaml"))
    assert caught.value.exit_code == 2
    return [line.removeprefix("x.yaml:") for line in str(caught.value).splitlines()]


def _load(content: bytes) -> Case | CaseError:
    """A case or what is wrong with it; no other exception may come out."""
    try:
        return load_text(content, Path("x.yaml"))
    except CaseError as error:
        return error


def value_problem(value: str) -> str:
    """What is wrong with a value on an axis; exactly one thing."""
    [problem] = problems(f"case: c\ntarget: {{command: x}}\nsweep:\n  n: [1, {value}]\n")
    place, _, message = problem.partition(": ")
    assert place == "4:10"
    return message


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("no", "write false, or 'no' for the text"),
        ("Yes", "write true, or 'Yes' for the text"),
        ("ON", "write true, or 'ON' for the text"),
        ("off", "write false, or 'off' for the text"),
        ("017", "017 is 15 in YAML 1.1 (octal) and 17 in YAML 1.2, write 17 or 0o17, or '017' for the text"),
        ("089", "write 89, or '089' for the text"),
        ("1e3", "write 1000 for the integer, or 1.0e3 for the real number"),
        ("1e-4", "write 1.0e-4 for the real number"),
        ("1:30", "write '1:30' for the text"),
        ("1_000", "write 1000"),
        ("~", "nothing among the values, write numbers, texts, true, false or a range"),
        (".inf", "inf cannot be a value of an axis, use a finite number"),
        ("[2]", "a list in a list among the values, write numbers, texts, true, false or a range"),
    ],
)
def test_a_trap_is_an_error_with_advice(value: str, advice: str) -> None:
    assert value_problem(value).endswith(advice)


@pytest.mark.parametrize(
    "value", ["'no'", '"017"', "'1e3'", "'1:30'", "nope", "1.0e3", "0x1f", "-3", "0", "2026-01-01"]
)
def test_a_quoted_trap_and_a_plain_value_are_not(value: str) -> None:
    case = load_text(f"case: c\ntarget: {{command: x}}\nsweep: {{n: [7, {value}]}}\n".encode(), Path("x.yaml"))
    assert len(case.axes[0].values) == 2


def test_a_trap_in_a_key() -> None:
    [problem] = problems("case: c\ntarget: {command: x}\nsweep:\n  on: [1]\n")
    assert problem.startswith("4:3: on is a truth value in YAML 1.1")


def test_a_call_cut_at_its_comma_is_one_problem_that_shows_the_call() -> None:
    [problem] = problems("case: c\ntarget: {command: x}\nsweep: {a: [1], b: [2]}\nwhere: [a > 0, min(a, b) < 4]\n")
    assert problem == (
        "4:16: 'min(a' has a bracket without its partner: YAML cuts a call at its comma, "
        'quote the whole: "min(a, b) < 4"'
    )


def test_braces_that_yaml_takes_for_a_mapping() -> None:
    [problem] = problems("case: c\ntarget: {command: [./bench, {n}]}\nsweep: {n: [1]}\n")
    assert problem == "2:29: {n} is a mapping in YAML, quote it: '{n}'"
    [problem] = problems("case: c\ntarget: {command: [./bench, --n={n}]}\n")
    assert "quote a text with braces" in problem


def test_a_duplicate_key_names_the_first() -> None:
    assert "3:1: duplicate key 'target', first in line 2: keep one" in problems(
        "case: c\ntarget: {command: x}\ntarget: {command: y}\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: a case file is a mapping"),
        ("- case: c\n", "1:1: a case file is a mapping"),
        ("case: c\n---\ncase: d\n", "2:1: a second document"),
        ("case: !!python/object:os.system c\n", "1:7: the tag !!python/object:os.system, leave it out"),
        ("case: *x\n", "1:7: *x names no anchor"),
        ("case: &x [*x]\n", "1:11: *x stands inside its own anchor"),
        ("a: &a {b: 1}\nc: {<<: *a}\n", "2:5: the merge key <<"),
        ("? [a]\n: 1\n", "1:3: a list as a key"),
        (
            "case: c\n\ttarget: x\n",
            "2:1: not YAML: found character '\\t' that cannot start any token, indent with blanks",
        ),
        ("case: a: b\n", "1:8: not YAML: mapping values are not allowed here, quote a text with a colon"),
        ("case: [a\n", "2:1: not YAML: "),
        ("case: @x\n", "1:7: not YAML: found character '@' that cannot start any token, quote a text that begins"),
        ("case: 'x\n", "2:1: not YAML: found unexpected end of stream"),
        (b"case: \xff\n", "1:7: byte 0xff is not UTF-8"),
        (b"case: c\n\x7fELF\x00\n", "2:1: control character U+007F"),
        ("[" * 60, "1:41: lists or mappings more than 40 deep"),
    ],
)
def test_what_is_not_a_case_file_says_so(text: str | bytes, expected: str) -> None:
    assert problems(text)[0].startswith(expected)


def test_an_alias_bomb_is_refused_quickly() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    start = time.perf_counter()
    [problem] = problems("\n".join(lines))
    assert "more than 100000 values with the aliases written out" in problem
    assert time.perf_counter() - start < 5


def test_an_alias_is_the_value_it_names() -> None:
    case = load_text(b"case: c\ntarget: {command: x}\nsweep: {a: &v [1, 2], b: *v}\n", Path("x.yaml"))
    assert case.axes[0].values == case.axes[1].values == (1, 2)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_bytes(GOOD + b"#" * MAX_BYTES)
    with pytest.raises(CaseError, match=r"big.yaml:1:1: larger than 256 KiB"):
        load(big)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"none.yaml:1:1: cannot read it: No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(CaseError, match=r":1:1: cannot read it: Is a directory"):
        load(tmp_path)


def test_a_byte_order_mark_and_windows_lines_are_harmless() -> None:
    content = b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n")
    assert load_text(content, Path("x.yaml")).axes[0].values == (1, 2, 4)


def test_every_key_and_value_has_its_place() -> None:
    document = parse_document(b"case: c\nsweep:\n  n: [1,\n      2]\n  '\xc3\xa9': {from: 1}\n", "x.yaml")
    assert document.mark(("sweep", "n", 1)) == document.mark(("sweep", "n", 1, "deeper"))
    assert (document.mark(("sweep", "n", 1)).line, document.mark(("sweep", "n", 1)).column) == (4, 7)
    assert (document.key_mark(("sweep", "é", "from")).line, document.key_mark(("sweep", "é", "from")).column) == (5, 9)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=120).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_case_or_a_case_error(content: bytes) -> None:
    outcome = _load(content)
    if isinstance(outcome, CaseError):
        assert outcome.problems
        assert all(problem.mark.line >= 1 and problem.mark.column >= 1 for problem in outcome.problems)


@settings(deadline=None)
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 12),
    st.binary(max_size=6) | st.sampled_from([b"{", b"[", b"*a", b"&a ", b"!", b"\n"]),
)
def test_a_damaged_case_is_a_case_or_a_case_error(at: int, drop: int, put: bytes) -> None:
    outcome = _load(GOOD[:at] + put + GOOD[at + drop :])
    assert isinstance(outcome, Case) or str(outcome).startswith("x.yaml:")


@settings(deadline=None)
@given(st.text(alphabet="0123456789eE.+-_:xobXyYnNoOsSfFtTrRuUaAlL~", max_size=8))
def test_a_plain_scalar_means_what_yaml_says_or_is_a_trap(text: str) -> None:
    """Where we see no trap, PyYAML (YAML 1.1) reads the same value, but for what YAML 1.2 and people read our way."""
    value, trap = plain_scalar(text)
    if trap is not None or text.lower().lstrip("+-").startswith("0o") or "-" in text[1:] or ":" in text:
        return
    try:
        theirs = yaml.safe_load(f"[{text}]")
    except (yaml.YAMLError, ValueError):
        return
    theirs = theirs[0] if theirs else None
    if isinstance(value, float) and isinstance(theirs, str):
        assert set("e.") <= set(text.lower())  # 1.0e3, which YAML 1.1 wants as 1.0e+3
        return
    assert (value, type(value)) == (theirs, type(theirs)) or value != value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'title: "\ud800 x"', "1:8: half a character"),
        (r'title: "a\0b"', "1:8: a NUL character"),
        (r'title: "\U00110000"', "1:1: not YAML"),
    ],
)
def test_an_escape_that_makes_no_text(text: str, expected: str) -> None:
    assert problems(text + "\n")[0].startswith(expected)


def test_a_pair_of_surrogates_is_one_character_as_in_json() -> None:
    case = load_text(GOOD + b'title: "\\ud83d\\ude00"\n', Path("x.yaml"))
    assert case.title == "\U0001f600"
