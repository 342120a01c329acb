"""The `build:` of a case: a command run once before the first probe, like a probe itself, its output kept."""

from __future__ import annotations

from pathlib import Path

from cudadiag.case import Case
from cudadiag.errors import Undecided
from cudadiag.session.progress import Progress
from cudadiag.session.stop import Stop
from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest

MARK = "built"
TAIL_LINES = 15


def build(case: Case, build_dir: Path, guardian: Guardian, stop: Stop, progress: Progress) -> None:
    """Run the build unless this run did it already. Raises Undecided when it fails, with the end of its output."""
    wanted = case.build_command(build_dir)
    if wanted is None or (build_dir / MARK).exists():
        return
    argv, cwd, timeout_s = wanted
    log_folder = build_dir.with_name("build-log")
    for folder in (build_dir, log_folder):
        folder.mkdir(exist_ok=True)
    progress.note(f"building: {' '.join(argv)}")
    request = ProbeRequest(
        target={"kind": "command", "argv": argv},
        folder=str(log_folder),
        observer="plain",
        cwd=str(cwd),
        limits=Limits(timeout_s=timeout_s),
    )
    facts = run_probe(request, guardian, stop.event.is_set)
    if stop.requested:
        return
    if facts.exit_code != 0 or facts.timed_out:
        raise Undecided(f"the case's build failed: {_why(facts, timeout_s)}\n{_tail(facts)}", hint=f"see {log_folder}")
    (build_dir / MARK).touch()


def _why(facts: ProbeFacts, timeout_s: float) -> str:
    if facts.start_error:
        return facts.start_error
    if facts.timed_out:
        return f"it took longer than {timeout_s:g} s"
    return f"signal {facts.signal}" if facts.signal is not None else f"exit status {facts.exit_code}"


def _tail(facts: ProbeFacts) -> str:
    lines: list[str] = []
    for stream in (facts.stdout, facts.stderr):
        if stream and stream.total_bytes:
            lines += Path(stream.path).read_text(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])
