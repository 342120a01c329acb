"""Something did not end in time. Beside a fault these are what its peers saw; alone they are the finding."""

from __future__ import annotations

from cudadiag.model import FaultKind
from cudadiag.triage.sign import Role
from cudadiag.triage.wording import WordingReader, wording

_KIND = FaultKind.LAUNCH_TIMEOUT
HANG = WordingReader(
    "hang",
    (
        wording(
            r"Watchdog caught collective operation timeout: Work\w+\(.*?OpType=(?P<call>\w+)", Role.HANG,
            "collective-timeout", "a collective did not finish: one rank is missing, late, or in another collective",
            kind=_KIND,
        ),
        wording(
            r"Timeout at NCCL work|Exception \(either an error or timeout\) detected by watchdog|"
            r"Some NCCL operations have failed or timed out|taking the entire process down",
            Role.HANG, "collective-timeout", "a collective did not finish", kind=_KIND, weak=True,
        ),
        wording(
            r"Detected mismatch between collectives on ranks|Collective mismatch|ranks? .{0,20}didn't (?:join"
            r"|participate)",
            Role.HANG, "collective-mismatch", "ranks run different collectives", kind=_KIND,
        ),
        wording(
            r"(?i)watchdog timeout|nvlddmkm stopped responding|"
            r"watchdog.{0,40}\btimed? ?out|scheduler (?:seems|appears) stuck"
            r"|forward pass.{0,20}stuck",
            Role.HANG, "watchdog", "the server's watchdog saw no progress", kind=_KIND,
        ),
        wording(
            r"No available shared memory broadcast block found in \d+ seconds|"
            r"RPC call to (?P<call>\w+) timed out|Timed out waiting for .{0,60}(?:worker|engine|scheduler|rank)",
            Role.HANG, "no-answer", "a worker did not answer in time: it hangs or is gone", kind=_KIND, weak=True,
        ),
        wording(
            r"(?i)hangs? detected|deadlock detected|kernel (?:hung|did not (?:finish|return|terminate))",
            Role.HANG, "hang", "something hangs", kind=_KIND,
        ),
        wording(
            r"watchdog: BUG: soft lockup|INFO: task \S+ blocked for more than \d+ seconds", Role.HANG, "kernel-lockup",
            "the system's kernel saw a task stand still", kind=_KIND, weak=True,
        ),
        wording(
            r"(?i)^(?:\[?timeout\]?:? )?(?:command|process|test|job|step|benchmark|config\S*"
            r"|run) .{0,80}timed out after "
            r"[\d.]+ ?(?:s|sec|ms|min|hour)|subprocess\.TimeoutExpired|TimeoutExpired: Command"
            r"|Failed: Timeout >[\d.]+s|"
            r"DUE TO TIME LIMIT|\+{3,} Timeout \+{3,}",
            Role.HANG, "time-limit", "a time limit ended it",
        ),
    ),
)  # fmt: skip
