"""The table of commands. To add one: a line here, and a file with a click command of that name.

Nothing is imported until the command is called, so that `cudadiag --help` stays quick.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """`target` is "module:attribute" of the click command; `program` tells whether it takes a program after `--`."""

    name: str
    target: str
    help: str
    section: str
    program: bool = False


FIND, WATCH, WORK = "Find", "Look closer", "Around it"

COMMANDS: tuple[Entry, ...] = (
    Entry("run", "cudadiag.cli.run:command", "Run one shape and judge it.", FIND, program=True),
    Entry("sweep", "cudadiag.cli.sweep:command", "Run every shape, each in a process of its own.", FIND, program=True),
    Entry("bisect", "cudadiag.cli.bisect:command", "Find the first failing shape and the rule.", FIND, program=True),
    Entry("sanitize", "cudadiag.cli.sanitize:command", "Say what a fault is and who agrees.", WATCH, program=True),
    Entry("diagnose", "cudadiag.cli.diagnose:command", "Test the usual explanations of it.", WATCH, program=True),
    Entry("explain", "cudadiag.cli.explain:command", "Answer again from a run's ledger, running nothing.", WATCH),
    Entry("triage", "cudadiag.cli.triage:command", "Read crash logs: the first real fault, the rest folded.", WATCH),
    Entry("history", "cudadiag.cli.history:command", "Show failures over time, by signature.", WATCH),
    Entry("lookup", "cudadiag.cli.lookup:command", "Explain a CUDA error or an Xid.", WATCH),
    Entry("gate", "cudadiag.cli.gate:command", "Run cases in CI: red for a new crash only.", WORK),
    Entry("doctor", "cudadiag.cli.doctor:command", "Say what this machine can do, and what is missing.", WORK),
    Entry("cases", "cudadiag.cli.cases:command", "List the cases that can be run by name.", WORK),
    Entry("init", "cudadiag.cli.init:command", "Write a commented starter case.", WORK),
    Entry("schema", "cudadiag.cli.schema:command", "Print a JSON Schema: of case files, ledgers, documents.", WORK),
    Entry("clean", "cudadiag.cli.clean:command", "List old runs and remove them.", WORK),
    Entry("completion", "cudadiag.cli.completion:command", "Print the shell's completion script.", WORK),
)
