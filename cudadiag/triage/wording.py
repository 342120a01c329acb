"""Families that are plain lists of wordings: a regular expression and what it stands for, one row each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cudadiag.model import FaultKind, Noticed
from cudadiag.triage.prefilter import fitting
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

_COPED = re.compile(
    r"(?i)fall(?:ing|s)? back|using (?:the )?cpu|skipp(?:ed|ing)|ignor(?:ed|ing)|will (?:not be|be disabled)"
    r"|disabl(?:ed|ing)|\boptional\b|retry(?:ing)?|proceeding|continuing"
)
_MILD = frozenset({Role.ENVIRONMENT, Role.NOT_A_CRASH})


@dataclass(frozen=True)
class Wording:
    """One wording. Named groups `file`, `line`, `call`, `number` and `name` fill the fields of that name."""

    pattern: re.Pattern[str]
    role: Role
    cause: str
    words: str
    kind: FaultKind | None = None
    name: str | None = None
    number: int | None = None
    weak: bool = False


def wording(
    pattern: str,
    role: Role,
    cause: str,
    words: str,
    *,
    kind: FaultKind | None = None,
    name: str | None = None,
    number: int | None = None,
    weak: bool = False,
) -> Wording:
    """A row with its expression compiled."""
    return Wording(re.compile(pattern), role, cause, words, kind, name, number, weak)


class WordingReader:
    """Gives the first row that fits a line. All rows are asked at once where google-re2 is there."""

    def __init__(self, name: str, rows: Sequence[Wording]) -> None:
        self.name = name
        self.rows = rows
        self._fitting = fitting(row.pattern.pattern for row in rows)

    def read(self, spot: Spot) -> Iterator[Sign]:
        for at in self._fitting(spot.text):
            match = self.rows[at].pattern.search(spot.text)
            if match:
                yield sign_of(self.rows[at], match, spot)
                return


def sign_of(row: Wording, match: re.Match[str], spot: Spot) -> Sign:
    groups = match.groupdict()
    line, number = groups.get("line"), groups.get("number")
    place = Noticed(groups.get("call"), groups.get("file"), int(line) if line else None, spot.log_line, match[0][:200])
    return Sign(
        role=row.role,
        log_line=spot.log_line,
        text=spot.quote,
        kind=row.kind,
        name=groups.get("name") or row.name,
        number=int(number) if number and len(number) < 10 else row.number,
        noticed=place,
        cause=row.cause,
        words=row.words,
        weak=row.weak or (row.role in _MILD and _COPED.search(spot.text) is not None),
    )
