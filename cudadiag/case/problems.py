"""What is wrong in a case file, and where. Several problems of one file are reported together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cudadiag.errors import UsageError


@dataclass(frozen=True, order=True)
class Mark:
    """A place in a file, both numbers from 1, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake: the place, what is wrong, what would be right."""

    mark: Mark
    message: str


class CaseError(UsageError):
    """A wrong case file (exit 2). One line per problem: `file:line:column: what is wrong, what would be right`."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = _without_echoes(problems)
        lines = [f"{file}:{p.mark.line}:{p.mark.column}: {p.message}" for p in self.problems]
        super().__init__(
            "\n".join(lines), hint="`cudadiag schema` prints every key; docs/reference/case-file.md explains them"
        )


def _without_echoes(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems in file order, one per place: the first one found at a place explains those that follow from it."""
    first: dict[Mark, Problem] = {}
    for problem in problems:
        first.setdefault(problem.mark, problem)
    return tuple(first[mark] for mark in sorted(first))
