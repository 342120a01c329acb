"""All readers, in the order in which they see a line. Block readers take their lines first; of the line readers every
one is asked, since a line may say several things."""

from __future__ import annotations

from cudadiag.triage.interface import BlockReader, LineReader
from cudadiag.triage.readers.cascade import CASCADE
from cudadiag.triage.readers.coredump_lines import CoreDumpLines
from cudadiag.triage.readers.cuda_errors import CudaErrors
from cudadiag.triage.readers.debugger import Debugger
from cudadiag.triage.readers.driver_lines import DriverLines
from cudadiag.triage.readers.environment import ENVIRONMENT
from cudadiag.triage.readers.hang import HANG
from cudadiag.triage.readers.host import Host
from cudadiag.triage.readers.kernel_log import KernelLog
from cudadiag.triage.readers.libraries import Libraries
from cudadiag.triage.readers.memory import Memory
from cudadiag.triage.readers.not_a_crash import NOT_A_CRASH
from cudadiag.triage.readers.sanitizer import Sanitizer
from cudadiag.triage.readers.serving import Serving
from cudadiag.triage.readers.wrong_result import WRONG_RESULT

BLOCK_READERS: tuple[BlockReader, ...] = (Sanitizer(), CoreDumpLines(), DriverLines())
LINE_READERS: tuple[LineReader, ...] = (
    CudaErrors(),
    Debugger(),
    KernelLog(),
    Memory(),
    Libraries(),
    HANG,
    WRONG_RESULT,
    ENVIRONMENT,
    NOT_A_CRASH,
    CASCADE,
    Host(),
    Serving(),
)

__all__ = ["BLOCK_READERS", "LINE_READERS"]
