"""One probe in words: how it ended, its verdict, its streams, its time line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cudadiag.evidence.signals import signal_name
from cudadiag.report.fault import fault_lines, fault_title
from cudadiag.report.style import (
    bytes_words,
    faint,
    outcome_word,
    printable,
    seconds_words,
    shape_words,
    strong,
    us_words,
)
from cudadiag.session.judged import Judged
from harness.records import ProbeFacts, StreamFacts
from harness.streams import merged_timeline

TAIL_LINES = 20


def end_words(facts: ProbeFacts) -> str:
    """`exit status 3`, `killed by SIGABRT`, `stopped after 30.0 s (time limit)`."""
    if facts.start_error:
        return f"could not be started: {printable(facts.start_error)}"
    if facts.timed_out:
        words = f"stopped after {seconds_words(facts.wall_s)} (time limit)"
    elif facts.killed_by_us:
        words = f"stopped by cudadiag: {printable(facts.killed_by_us)}"
    elif facts.signal is not None:
        words = f"killed by {signal_name(facts.signal)}"
    else:
        words = f"exit status {facts.exit_code}"
    if facts.survivors:
        words += f"; processes {', '.join(map(str, facts.survivors))} outlived SIGKILL"
    return words


def verdict_lines(judged: Judged, sources: Iterable[str] = ()) -> list[str]:
    """The verdict of one probe, the answer first."""
    line, verdict, facts = judged.line, judged.verdict, judged.line.facts
    lines = [f"{outcome_word(verdict.outcome)}  {shape_words(line.shape)}"]
    lines.append(f"  {printable(verdict.proof or verdict.reason)}")
    if verdict.fault:
        lines += [f"  {row}" for row in fault_lines(verdict.fault, sources)]
    step = f", last step {facts.last_step}" if facts.last_step else ""  # a command tells none
    lines.append(f"  ended    {end_words(facts)}{step}, {seconds_words(facts.wall_s)}")
    lines.append(f"  run      {how_words(judged)}")
    if judged.us_per_call is not None:
        reference = f" (reference {us_words(judged.reference_us)})" if judged.reference_us is not None else ""
        lines.append(f"  us/call  {us_words(judged.us_per_call)}{reference}")
    lines += [f"  note     {printable(str(note))}" for note in facts.launch.get("notes", ())]
    lines += [f"  note     {note}" for note in straggler_notes(facts)]
    lines.append(f"  probe    {line.number}: {facts.folder}")
    return lines


def straggler_notes(facts: ProbeFacts) -> list[str]:
    """What the program left running, as one sentence; [] where nothing was."""
    if not facts.stragglers or facts.timed_out:
        return []
    left = ", ".join(f"{printable(str(s['name']))} ({s['pid']})" for s in facts.stragglers[:5])
    more = ", ..." if len(facts.stragglers) > 5 else ""
    return [f"still ran when the program ended, and was ended by cudadiag: {left}{more}"]


def how_words(judged: Judged) -> str:
    """Observer, device and memory model: what a verdict depends on."""
    line = judged.line
    memory = f", {line.memory_model} memory" if line.device == "emulator" else ""
    device = "no device" if line.device == "none" else line.device
    return f"observer {line.observer}, {device}{memory}"


def short_words(judged: Judged) -> str:
    """What happened, for one row of a table."""
    if judged.fault:
        return fault_title(judged.fault)
    return "" if judged.verdict.proof else printable(judged.verdict.reason)


def stream_lines(facts: ProbeFacts, tail: int = TAIL_LINES) -> list[str]:
    """The ends of both streams, each under its own heading: never mixed."""
    lines = []
    for name, stream in (("stdout", facts.stdout), ("stderr", facts.stderr)):
        if stream is None or not stream.total_bytes:
            lines.append(faint(f"{name}: empty"))
            continue
        rows = last_lines(stream)
        shown = rows[-tail:]
        cut = f", last {len(shown)} of {len(rows)} lines" if len(rows) > len(shown) else ""
        if stream.error:
            lines.append(f"{name}: {printable(stream.error)}")
        lines.append(strong(f"{name}") + faint(f" ({bytes_words(stream.total_bytes)}{cut}: {stream.path})"))
        lines += [f"  {row}" for row in shown]
    return lines


def last_lines(stream: StreamFacts) -> list[str]:
    """The lines of a stream that were kept; where its file is gone, why."""
    try:
        data = Path(stream.path).read_bytes()
    except OSError as problem:
        return [f"(cannot be read: {problem.strerror})"]
    return [printable(row) for row in data.decode("utf-8", "replace").splitlines()]


def timeline_lines(facts: ProbeFacts) -> list[str]:
    """Both streams and the child's steps in the order in which they happened, with seconds after the start.

    Lines of the two streams read in the same round carry `=`: which of them came first is not known.
    """
    try:
        rows = timeline_rows(facts)
    except OSError as problem:
        return [f"(the streams cannot be read: {problem.strerror})"]
    return [f"{at_s:9.3f}{'=' if tied else ' '} {source:<6} | {printable(text)}" for at_s, source, text, tied in rows]


def timeline_rows(facts: ProbeFacts) -> list[tuple[float, str, str, bool]]:
    """(seconds after the start, stdout/stderr/step, text, tied) in order. Raises OSError if the files are gone."""
    rows = [(crumb.at_s, "step", crumb.step, False) for crumb in facts.breadcrumbs]
    rows += [(r.at_s, r.stream, r.text.decode("utf-8", "replace"), r.tied) for r in merged_timeline(facts)]
    return sorted(rows, key=lambda row: row[0])
