"""The one root of cudadiag's own exceptions; each carries the exit code that the command ends with."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_UNDECIDED = 3
EXIT_BUG = 70
EXIT_SIGINT = 130


class CudadiagError(Exception):
    """A problem the user can act on: `message` names the flag or YAML key to change, `hint` where to read more."""

    exit_code: int = EXIT_UNDECIDED
    skips_commit: bool = False  # under --git-bisect: true of this commit only, where the command line is right

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CudadiagError):
    """Wrong use or a wrong case file: exit 2."""

    exit_code = EXIT_USAGE


class Undecided(CudadiagError):
    """The question could not be answered here (no device, a tool missing, a file that cannot be read): exit 3."""

    exit_code = EXIT_UNDECIDED
