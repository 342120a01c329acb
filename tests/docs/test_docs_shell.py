"""Every shell session in README.md, CONTRIBUTING.md and docs/ is run, and says what it says.

A block ```console holds lines that start with `$ ` (commands) and lines of output. What is shown must occur in the
output, in that order; lines in between may be left out. What changes from run to run (times, addresses, run names) or
with every improvement of the search (numbers of probes) is not compared. A comment before a block can say `not run:
REASON`, or `needs: gpu` or `needs: emulator`. `recorded: NAME` marks a session of an H200: it is compared, to the
digit, with what its ledger among the recorded runs says when it is read again (a line may be cut short at its end).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "session"))
from h200_runs import Runs

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIMIT_S = 240
NOTE = re.compile(r"<!-- (not run|needs|recorded): (.*?) -->")
VOLATILE = [
    (re.compile(r"\d{8}-\d{6}-[\w.-]+"), "RUN"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"(?<![\w.])/[\w./-]+/"), ""),
    (re.compile(r"\bprobes? \d+(, \d+)*"), "PROBES"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|us|min)\b"), "TIME"),
    (re.compile(r"\b\d+\.\d+\b"), "NUMBER"),
    (re.compile(r"\s+"), " "),
]


@dataclass
class Block:
    """One console block. `reason` is set where it is not run, `needs` names a device, `recorded` a run on an H200."""

    page: Path
    line: int
    reason: str | None = None
    needs: str | None = None
    recorded: str | None = None
    steps: list[tuple[str, list[str]]] = field(default_factory=list)


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    current: Block | None = None
    note: tuple[str, str] | None = None
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        match = NOTE.search(line)
        if match and current is None:
            note = (match[1], match[2])
        elif line == "```console":
            current = Block(page, number)
            if note:
                setattr(current, "reason" if note[0] == "not run" else note[0], note[1])
            found.append(current)
        elif line == "```":
            current = note = None
        elif current is not None and line.startswith("$ "):
            current.steps.append((line[2:], []))
        elif current is not None and current.steps and line.strip():
            current.steps[-1][1].append(line)
    return found


def normal(line: str) -> str:
    for pattern, word in VOLATILE:
        line = pattern.sub(word, line)
    return line.strip()


def run(block: Block, folder: Path) -> list[str]:
    """The output of each step. The steps of a block share a shell, the blocks of a page share a folder."""
    mark = "@@@step@@@"
    script = "".join(f"__code=$?; printf '\\n{mark}\\n'; (exit $__code)\n{command}\n" for command, _ in block.steps)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        check=False,
        text=True,
    )
    return done.stdout.split(f"\n{mark}\n")[1:]


def missing_lines(expected: list[str], output: str) -> list[str]:
    rows = iter([normal(line) for line in output.splitlines()])
    return [line for line in expected if not any(normal(line) == row or row.startswith(normal(line)) for row in rows)]


def why_skip(block: Block) -> str | None:
    if block.reason:
        return block.reason
    if block.needs == "gpu" and not Path("/dev/nvidiactl").exists():
        return "needs a GPU"
    if block.needs == "emulator" and not find_spec("llvmlite"):
        return "needs the emulated device (llvmlite)"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_session_shown_is_what_happens(page: Path, tmp_path: Path) -> None:
    ran = 0
    reasons = []
    for block in blocks(page):
        if block.recorded:
            continue  # the next test
        reason = why_skip(block)
        if reason:
            reasons.append(f"line {block.line}: {reason}")
            continue
        outputs = run(block, tmp_path)
        assert len(outputs) == len(block.steps), f"{page.name}:{block.line}: the shell ended early"
        for (command, expected), output in zip(block.steps, outputs, strict=True):
            missing = missing_lines(expected, output)
            assert not missing, f"{page.name}:{block.line}: $ {command}\nnot shown: {missing}\n\n{output}"
            ran += 1
    if not ran and reasons:
        pytest.skip("; ".join(reasons))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("recorded"))


RECORDED = [block for page in PAGES for block in blocks(page) if block.recorded]


@pytest.mark.parametrize("block", RECORDED, ids=lambda block: f"{block.page.stem}-{block.line}")
def test_every_session_of_an_h200_is_what_its_ledger_says(block: Block, runs: Runs) -> None:
    assert block.recorded is not None
    ((command, expected),) = block.steps
    assert command == runs.command(block.recorded)
    rows = iter(runs.shown(block.recorded))
    missing = [line for line in expected if not any(row.strip().startswith(line.strip()) for row in rows)]
    assert not missing, "\n".join(runs.shown(block.recorded))


def test_a_wrong_session_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; echo two\none\nthree\n$ false\n$ echo $?\n1\n```\n")
    (block,) = blocks(page)
    outputs = run(block, tmp_path)
    assert missing_lines(block.steps[0][1], outputs[0]) == ["three"]
    assert missing_lines(block.steps[2][1], outputs[2]) == []


def test_the_readme_shows_how_to_make_an_environment_and_how_to_test() -> None:
    text = (ROOT / "README.md").read_text()
    assert "$ python3 -m venv .venv" in text
    assert re.search(r"^\$ \.venv/bin/python -m pytest -n auto$", text, re.MULTILINE)


def test_reference_pages_are_what_the_program_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/make.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_nothing_in_the_repository_names_a_place_of_one_machine() -> None:
    words = ["/" + "work/", "/" + "root/"]
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.split(b"\0")
    found = []
    for name in tracked:
        path = ROOT / os.fsdecode(name)
        if name and path.suffix in (".py", ".md", ".yaml", ".toml", ".cu", ".json", "") and path.is_file():
            data = path.read_bytes()
            if any(word.encode() in data for word in words) and b"recorded" not in name:
                found.append(os.fsdecode(name))
    assert not found
