"""Runs of this program on an H200 (NVRTC 13.0, driver 580.159.04, Python 3.12), as test data.

The archive holds for each of them the ledger, what was printed, the progress on stderr, the folders of a few probes,
and the sources of the kernels as they were. Paths of that machine became `/recorded`, the GPU's UUID another one.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

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

    def printed(self, name: str) -> list[str]:
        """stdout of the run on that machine, its paths made those of the folder."""
        return (self.folder / name / "printed.txt").read_text().splitlines()

    def progress(self, name: str) -> list[str]:
        """stderr, likewise."""
        return (self.folder / name / "progress.txt").read_text().splitlines()
