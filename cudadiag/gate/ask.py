"""What a gate was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudadiag.gate.planning import Shard
from cudadiag.session.ask import Ask


@dataclass(frozen=True)
class GateAsk:
    """`cases`: paths or names; none for all below ./cases. The other fields are those of `Ask`, for every case."""

    cases: tuple[str, ...] = ()
    device: str = "auto"
    observer: str | None = None
    memory_model: str = "exact"
    timeout_s: float | None = None
    check: bool = True
    jobs: int = 1
    wait_s: float = 0.0
    repeat: int = 1
    budget_s: float | None = None
    shard: Shard = field(default_factory=Shard)
    strict: bool = False
    cwd: str = "."

    def of_case(self, path: str, needs_device: bool) -> Ask:
        """The question about one case. On the emulated device programs run as they are: it runs kernels only."""
        device = "none" if self.device == "emulator" and not needs_device else self.device
        return Ask(
            purpose="gate",
            case=path,
            cwd=self.cwd,
            observer=self.observer,
            device=device,
            memory_model=self.memory_model,
            timeout_s=self.timeout_s,
            check=self.check,
            jobs=self.jobs,
            wait_s=self.wait_s,
        )
