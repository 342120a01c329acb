"""Benchmark tables in a log: the last finished row says how far the program came before it stopped.

A table is a line of column names and, below it, rows with one cell for each name, most of them numbers. Pipes, commas,
tabs and blanks separate cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudadiag.model import Scalar
from cudadiag.triage.clean import clean, without_colours

MAX_COLUMNS = 40
_NAME = re.compile(r"[A-Za-z_][\w./%()\[\]-]*$")
_NUMBER = re.compile(r"-?\d[\d_]{0,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?$")
_CUT = re.compile(r"(?:\.\.\.|…)\s*$")
_RULE = re.compile(r"^[\s|+:=-]{3,}$")
_SPEED = re.compile(r"(?i)tok\w*(?:/s|_per_s\w*|ps)|throughput|gflop|gb/s|tflop")


@dataclass(frozen=True)
class Row:
    """One finished row: cells by column name, with the log's line number."""

    cells: Mapping[str, Scalar]
    log_line: int


@dataclass(frozen=True)
class Table:
    """A table as far as it was printed. `cut`: a row was begun and not finished."""

    title: str | None
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    log_line: int
    cut: bool = False

    @property
    def last(self) -> Row:
        return self.rows[-1]

    def speed_column(self) -> str | None:
        """The column that holds a throughput, where there is one."""
        return next((name for name in self.columns if _SPEED.search(name)), None)


def tables(data: bytes, first_line: int = 1) -> list[Table]:
    """All tables of a text with at least one finished row."""
    found: list[Table] = []
    title: str | None = None
    lines = [(number, _text(raw)) for number, raw in _lines(data, first_line)]
    at = 0
    while at < len(lines):
        number, text = lines[at]
        names = _header(text)
        if names is not None:
            table, used = _read(names, title, number, lines[at + 1 :])
            if table is not None:
                found.append(table)
                at += used
        if text.strip() and _header(text) is None and not _CUT.match(text):
            title = text.strip()[:200]
        at += 1
    return found


def _lines(data: bytes, first_line: int) -> Iterator[tuple[int, str]]:
    yield from enumerate(data.decode("utf-8", "replace").split("\n"), start=first_line)


def _text(raw: str) -> str:
    """A line without what other programs put before it; bars between cells are no such thing."""
    return without_colours(raw) if raw.count("|") >= 2 else clean(raw).text


def _cells(text: str) -> list[str]:
    if "|" in text:
        return [cell.strip() for cell in text.strip().strip("|").split("|")]
    if "\t" in text.strip():
        return [cell.strip() for cell in text.strip().split("\t")]
    if text.count(",") >= 2 and ", " not in text.strip():
        return [cell.strip() for cell in text.strip().split(",")]
    wide = re.split(r"\s{2,}", text.strip())
    narrow = text.split()
    return narrow if len(wide) < 2 or all(_NUMBER.match(cell) for cell in narrow) else wide


def _header(text: str) -> tuple[str, ...] | None:
    cells = _cells(text)
    if not 2 <= len(cells) <= MAX_COLUMNS or len(set(cells)) != len(cells) or text.rstrip().endswith((":", ".", ",")):
        return None
    names = [cell for cell in cells if _NAME.match(cell.replace(" ", "_")) and len(cell) <= 40]
    return tuple(cells) if len(names) == len(cells) else None


def _read(
    names: tuple[str, ...], title: str | None, number: int, lines: Sequence[tuple[int, str]]
) -> tuple[Table | None, int]:
    rows: list[Row] = []
    cut, used = False, 0
    for line, text in lines:
        cells = _cells(_CUT.sub("", text))
        if _RULE.match(text) and not rows:
            used += 1
            continue
        row = _row(names, cells)
        if row is None:
            cut = _is_begun(cells, names, rows)
            break
        used += 1
        ended = _CUT.search(text) is not None
        rows.append(Row(row, line))
        if ended:
            cut = True
            break
    if not rows or not _is_table(names, rows):
        return None, 0
    return Table(title, names, tuple(rows), number, cut), used


def _row(names: Sequence[str], cells: Sequence[str]) -> dict[str, Scalar] | None:
    if len(cells) != len(names) or not any(_NUMBER.match(cell) for cell in cells):
        return None
    numbers = sum(bool(_NUMBER.match(cell)) for cell in cells)
    if numbers * 2 < len(cells):
        return None
    return {name: _value(cell) for name, cell in zip(names, cells, strict=True)}


def _is_table(names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Two words over a word and a number are none; a single row must be all numbers."""
    if len(names) < 3:
        return len(rows) >= 2 and all(isinstance(cell, int | float) for row in rows for cell in row.cells.values())
    return len(rows) >= 2 or all(isinstance(cell, int | float) for cell in rows[0].cells.values())


def _is_begun(cells: Sequence[str], names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether a line is a row that was cut off: fewer cells, all of them fitting those above."""
    if not rows or not 0 < len(cells) < len(names) or not all(cells):
        return False
    return all(_NUMBER.match(cell) is not None for cell in cells)


def _value(cell: str) -> Scalar:
    if not _NUMBER.match(cell):
        return cell
    plain = cell.replace("_", "")
    return float(plain) if re.search(r"[.eE]", plain) else int(plain)
