"""Runs of this program on an H200 (NVRTC 13.0, driver 580.159.04, Python 3.12), as test data.

The archive holds for each of them the ledger, what was printed, the progress on stderr, the folders of a few probes,
and the sources of the kernels as they were. Paths of that machine became `/recorded`, the GPU's UUID another one.
"""

from __future__ import annotations

import shlex
import tarfile
from pathlib import Path

import click

from cudadiag.cli.bisect import lines_of
from cudadiag.cli.explain import findings
from cudadiag.report.probe import stream_lines, timeline_lines, verdict_lines
from cudadiag.report.table import SweepTable
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json
from cudadiag.store.ledger import Ledger, read_ledger

ARCHIVE = Path(__file__).parent / "recorded" / "h200-20261129.tar.xz"
PLACE = "/recorded"
BISECTED = (
    "bisect_attn", "bisect_attn_plain", "tree_flat", "bulk_tail", "commit_none", "decode_loop", "leaky", "bench",
)  # fmt: skip
SWEPT = ("sweep_attn", "sweep_build")
RUN = ("run_attn", "memcheck", "coredump")


class Runs:
    """The archive unpacked into a folder, its paths made those of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with tarfile.open(ARCHIVE) as tar:
            tar.extractall(folder, filter="data")
        for path in [*folder.glob("*/*.*"), *folder.glob("*/probes/*/*")]:
            path.write_bytes(path.read_bytes().replace(f"{PLACE}/".encode(), f"{folder}/".encode()))

    def ledger(self, name: str) -> Ledger:
        return read_ledger(self.folder / name / "ledger.jsonl")

    def command(self, name: str) -> str:
        """As it was typed."""
        return shlex.join(self.ledger(name).run.command_line) if name != "doctor" else "cudadiag doctor"

    def shown(self, name: str) -> list[str]:
        """What the run prints on stdout when its ledger is read today; of `doctor` what it printed."""
        if name == "doctor":
            return self.printed(name)
        ledger = self.ledger(name)
        if ledger.run.purpose == "bisect":
            lines = lines_of(findings(ledger, None))
        else:
            judging = judging_from_json(ledger.run.settings["judging"])
            judged = [judging.judged(line) for line in ledger.probes]
            lines = _table(ledger, judged) if ledger.run.purpose == "sweep" else _probe(ledger, judged[0])
        text = click.unstyle("\n".join(lines))
        return text.replace(f"{self.folder}/repository/", "").replace(str(self.folder), PLACE).splitlines()

    def printed(self, name: str) -> list[str]:
        """stdout of the run on that machine, its paths made those of the folder."""
        return (self.folder / name / "printed.txt").read_text().splitlines()

    def progress(self, name: str) -> list[str]:
        """stderr, likewise."""
        return (self.folder / name / "progress.txt").read_text().splitlines()


def _table(ledger: Ledger, judged: list[Judged]) -> list[str]:
    table = SweepTable(ledger.run.sweep, timed=True)
    return [table.header(), *(table.row(one) for one in sorted(judged, key=lambda j: j.line.index or 0))]


def _probe(ledger: Ledger, judged: Judged) -> list[str]:
    facts = judged.line.facts
    streams = timeline_lines(facts) if "--time-line" in ledger.run.command_line else stream_lines(facts)
    return [*verdict_lines(judged, ledger.run.sources), "", *streams]
