"""`cudadiag gate`, and `cudadiag gate merge`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudadiag.cli.options import (
    OBSERVERS,
    invocation,
    json_option,
    memory_option,
    no_check_option,
    store_option,
    timeout_option,
    together,
    wait_option,
)
from cudadiag.errors import EXIT_FOUND, UsageError

if TYPE_CHECKING:
    from cudadiag.gate.ask import GateAsk
    from cudadiag.gate.baseline import Baseline
    from cudadiag.gate.edit import Why
    from cudadiag.gate.outputs.files import LiveFile
    from cudadiag.gate.report import GateReport
    from cudadiag.gate.running import Gate

FORMAT_NAMES = ("junit", "sarif", "github", "gitlab", "markdown", "json")
COLOURS = {"new": "red", "changed": "red", "undecided": "magenta", "expired": "yellow", "vanished": "yellow"}


class WithMerge(click.Command):
    """`gate merge` is a command of its own; everything else are cases."""

    def below(self) -> dict[str, click.Command]:
        """Commands that this one's first word calls; for the reference pages."""
        return {"merge": merge_command}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] == "merge":
            return merge_command.make_context(f"{info_name} merge", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


_updating = together(
    click.option(
        "--update", is_flag=True, help="Edit the baseline: enter what is new, take out what is fixed or vanished."
    ),
    click.option("--reason", metavar="TEXT", help="Of new entries: why they are tolerated."),
    click.option("--owner", metavar="WHO", help="Of new entries: who looks after them."),
    click.option("--issue", metavar="URL", help="Of new entries: the address of the issue."),
    click.option("--expires", metavar="DATE", help="Of new entries: the last day. Default: in 90 days."),
)
_deciding = together(
    click.option(
        "--baseline",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path("cudadiag-baseline.yaml"),
        show_default=True,
        metavar="FILE",
        help="The crashes that are known. A missing file knows none.",
    ),
    click.option("--strict", is_flag=True, help="End with 1 where the baseline is expired, vanished or fixed too."),
    click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FORMAT=FILE",
        help=f"Also write FILE, complete at every moment: {', '.join(FORMAT_NAMES)}. Repeatable. "
        "`github` without a file prints annotations and writes the step summary.",
    ),
    store_option,
    json_option,
)
"""What both commands need: the baseline, and where the answer goes."""


@click.command("gate", cls=WithMerge)
@click.argument("cases", nargs=-1, metavar="[CASES]...")
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="WHICH",
    help="auto (a free GPU, nothing else), cuda, cuda:N, a UUID, emulator, none. Never replaced by another.",
)
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Fresh runs of each shape.")
@click.option("--budget", metavar="TIME", help="Run the most telling shapes in so much time: 90s, 5m, 1h30m.")
@click.option("--shard", metavar="K/N", help="Run part K of N; `gate merge` decides them together.")
@click.option("--observer", type=click.Choice(OBSERVERS), help="Who watches each probe. Default: the case's.")
@memory_option
@timeout_option
@no_check_option
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Probes at once on each device."
)
@wait_option
@_updating
@_deciding
def command(cases: tuple[str, ...], baseline: Path, store: Path, **options: Any) -> int:
    """Run cases in CI and be red for a new crash only.

    CASES are names, files or folders; without any, all below ./cases. The key `gate:` of a case chooses its shapes,
    else the ends of its sweep are run; the known crashes of the baseline, what failed before and the passing neighbours
    of both are always among them. Each finding is a line: new, changed, undecided, expired, vanished, fixed, flaky,
    known or left-out. Ends with 1 for new and changed ones, 3 where something was undecided, else 0.

    `cudadiag gate merge STORE...` decides the shards of a gate together (`cudadiag gate merge --help`).

    \b
    Examples:
      cudadiag gate
      cudadiag gate --device emulator -o junit=gate.xml -o sarif=gate.sarif
      cudadiag gate --budget 5m --repeat 3 verify_attn cases/field
      cudadiag gate --update --reason "scratch too small" --owner mb --issue https://example.org/7
      cudadiag gate --shard 2/8 --store shard-2
    """
    today = _today()
    why = _why(options, today)
    ask = _ask(cases, options)
    known = _baseline(baseline)
    gate = _gate(ask, known, _files(options["outputs"]), today, store)
    report = gate.run()
    code = _tell(report, options["as_json"], options["outputs"])
    if gate.interrupted is not None:
        return gate.interrupted
    return _update(report, baseline, code, why) if options["update"] else code


@click.command("merge")
@click.argument("stores", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@_updating
@_deciding
def merge_command(stores: tuple[Path, ...], baseline: Path, store: Path, **options: Any) -> int:
    """Decide the shards of a gate together, running nothing.

    STORES are the folders that `gate --shard` kept its runs in. Their ledgers are joined into one for each case, kept
    in --store. A shard that is missing or did not finish is undecided.

    \b
    Examples:
      cudadiag gate merge shard-1 shard-2 -o junit=gate.xml
      cudadiag gate merge downloaded/* --strict
    """
    from cudadiag.gate.merging import join_ledgers, merge, records, report_of
    from cudadiag.store.folders import Store

    today = _today()
    why = _why(options, today)
    known = _baseline(baseline)
    files = _files(options["outputs"])
    merged = join_ledgers(merge(records(stores)), Store(store.absolute()), invocation().command_line)
    report = report_of(merged, known, today, options["strict"], invocation().command_line)
    for file in files:
        file.write(report)
    code = _tell(report, options["as_json"], options["outputs"])
    return _update(report, baseline, code, why) if options["update"] else code


def _gate(ask: GateAsk, known: Baseline, files: list[LiveFile], today: datetime.date, store: Path) -> Gate:
    """A gate that has all it needs, and that keeps `files` and its own record current."""
    from cudadiag.gate.gathering import gather
    from cudadiag.gate.outputs.files import LiveFile
    from cudadiag.gate.record import FOLDER, NAME, ignored, record_format
    from cudadiag.gate.running import Around, Gate
    from cudadiag.report.watch import watcher
    from cudadiag.store.folders import Store

    kept = Store(store.absolute())
    candidates = gather(ask, kept, known)
    written = list(files)

    def publish(report: GateReport) -> None:
        for file in written:
            file.write(report)

    around = Around(kept, known, today, invocation().command_line, lambda sweep: watcher(sweep), publish)
    gate = Gate(ask, candidates, around)
    ignored(kept.root)
    written.append(LiveFile(kept.root / FOLDER / gate.name / NAME, record_format(not ask.cases)))
    return gate


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _why(options: Mapping[str, Any], today: datetime.date) -> Why | None:
    """What is said of new entries. Raises UsageError where it is said in vain."""
    from cudadiag.gate.edit import why_of

    why = why_of(options["reason"], options["owner"], options["issue"], options["expires"], today)
    if why is not None and not options["update"]:
        raise UsageError("--reason, --owner and --issue are for new entries: add --update")
    return why


def _ask(cases: tuple[str, ...], options: Mapping[str, Any]) -> GateAsk:
    from cudadiag.gate.ask import GateAsk
    from cudadiag.gate.planning import Shard, parse_budget, parse_shard

    return GateAsk(
        cases=cases,
        device=options["device"],
        observer=options["observer"],
        memory_model=options["memory"],
        timeout_s=options["timeout_s"],
        check=not options["no_check"],
        jobs=options["jobs"],
        wait_s=options["wait_s"],
        repeat=options["repeat"],
        budget_s=parse_budget(options["budget"]) if options["budget"] else None,
        shard=parse_shard(options["shard"]) if options["shard"] else Shard(),
        strict=options["strict"],
        cwd=str(Path.cwd()),
    )


def _baseline(path: Path) -> Baseline:
    from cudadiag.gate.baseline import Baseline, read_baseline

    if path.exists():
        return read_baseline(path)
    if click.get_current_context().get_parameter_source("baseline") is click.core.ParameterSource.COMMANDLINE:
        click.echo(f"cudadiag: there is no baseline {path} yet: nothing is known", err=True)
    return Baseline(path)


def _files(given: Sequence[str]) -> list[LiveFile]:
    """The files to keep current. Raises UsageError for a format that is none, and where one cannot be written."""
    from cudadiag.gate.outputs import FORMATS
    from cudadiag.gate.outputs.files import LiveFile

    files = []
    for word in given:
        name, equals, path = word.partition("=")
        if name not in FORMATS or (equals and not path) or (not equals and name != "github"):
            raise UsageError(f"-o {word}: write FORMAT=FILE, the formats are {', '.join(FORMATS)}")
        if path:
            files.append(LiveFile(Path(path), FORMATS[name]))
    return files


def _tell(report: GateReport, as_json: bool, outputs: Sequence[str]) -> int:
    """The answer on stdout: the findings, a line each, then the headline; or the document."""
    from cudadiag.gate.outputs import FORMATS
    from cudadiag.gate.outputs.markdown import headline
    from cudadiag.gate.words import clean, count_words

    if "github" in outputs:
        _github(report, err=as_json)
    if as_json:
        click.echo(FORMATS["json"].render(report).decode(), nl=False)
        return report.exit_code
    for finding in report.findings:
        word = click.style(f"{finding.status.value:<9}", fg=COLOURS.get(finding.status.value, "cyan"))
        click.echo(f"{word}  {clean(finding.case)}: {clean(finding.reason)}")
    shapes = len({(run.name, seen.index) for run in report.runs for seen in run.seen})
    click.echo(f"gate: {headline(report)}; {count_words(shapes, 'shape')} of {count_words(len(report.runs), 'case')}")
    if report.probes:
        click.echo(f"cudadiag: {count_words(report.probes, 'probe')}; {report.power}", err=True)
    return report.exit_code


def _github(report: GateReport, err: bool) -> None:
    """Annotations in the log, the summary in its file. `err`: stdout is for a document."""
    from cudadiag.gate.outputs import FORMATS

    click.echo(FORMATS["github"].render(report).decode(), nl=False, err=err)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with open(summary, "ab") as file:
                file.write(FORMATS["markdown"].render(report))
        except OSError as problem:
            raise UsageError(f"cannot write GITHUB_STEP_SUMMARY {summary}: {problem.strerror}") from problem


def _update(report: GateReport, path: Path, code: int, why: Why | None) -> int:
    """Edit the baseline. 1 becomes 0 where all that was red is in it now."""
    from cudadiag.gate.decide import exit_code
    from cudadiag.gate.edit import edited, write
    from cudadiag.gate.status import Status

    text = path.read_text(encoding="utf-8") if path.exists() else ""
    edit = edited(text, path, report.runs, report.findings, why)
    if edit.done:
        write(edit, path)
    for line in edit.done:
        click.echo(f"baseline: {line}")
    if code == EXIT_FOUND and why is None and report.of(Status.NEW):
        click.echo("cudadiag: new crashes enter the baseline with --reason, --owner and --issue", err=True)
    gone = (Status.FIXED, Status.VANISHED)
    left = [f for n, f in enumerate(report.findings) if n not in edit.recorded and f.status not in gone]
    return exit_code(left, report.runs, strict=report.strict, finished=report.finished) if edit.done else code
