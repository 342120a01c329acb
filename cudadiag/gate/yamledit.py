"""Edits of a block sequence in a YAML text that leave every other line as it is.

ruamel says where entries and keys stand; the lines themselves are cut and put in here. A dump of the whole document
would lay out anew what nobody touched, and loses or moves the comments around an entry that goes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

WITHIN, APPENDED = 0, 1  # at one place, what belongs to the entry before comes first


class SequenceEdit:
    """Edits of `document[key]`, a block sequence of mappings (or nothing yet), in `text`. Positions are those before
    any edit; `text()` gives the result."""

    def __init__(self, text: str, document: Any, key: str, yaml: YAML) -> None:
        self._lines = text.splitlines(keepends=True)
        if self._lines and not self._lines[-1].endswith("\n"):
            self._lines[-1] += "\n"
        self._document, self._key, self._yaml = document, key, yaml
        self._items: list[Any] = list(document.get(key) or ())
        self._starts = [self._dash_line(i) for i in range(len(self._items))]
        self._cuts: list[tuple[int, int, int, list[str]]] = []

    def remove(self, place: int) -> None:
        """An entry goes, with the comment lines directly above it."""
        start = self._starts[place]
        while start > 0 and self._is_comment(start - 1):
            start -= 1
        self._cuts.append((start, self._end(place), WITHIN, []))

    def set(self, place: int, name: str, value: Any) -> None:
        """A key of an entry gets another value; a new key comes last."""
        item = self._items[place]
        if item.fa.flow_style() or name not in item:
            changed = CommentedMap(item)
            changed[name] = value
            new = self._dumped(changed) if item.fa.flow_style() else None
            if new is not None:
                self._cuts.append((self._starts[place], self._end(place), WITHIN, new))
            else:
                at = self._end(place)
                self._cuts.append((at, at, WITHIN, self._key_lines(place, name, value)))
            return
        line = item.lc.key(name)[0]
        later = [item.lc.key(other)[0] for other in item if item.lc.key(other)[0] > line]
        end = self._trimmed(line, min(later, default=self._end(place)))
        lines = self._key_lines(place, name, value)
        if line == self._starts[place]:  # the key behind the dash
            lines[0] = self._lines[line][: item.lc.key(name)[1]] + lines[0].lstrip()
        self._cuts.append((line, end, WITHIN, lines))

    def append(self, entry: CommentedMap) -> None:
        """A new entry after the last one."""
        at = self._end(len(self._items) - 1) if self._items else self._document.lc.key(self._key)[0] + 1
        self._cuts.append((at, at, APPENDED, self._dumped(entry)))

    def text(self) -> str:
        lines = list(self._lines)
        ordered = sorted(enumerate(self._cuts), key=lambda cut: (*cut[1][:3], cut[0]), reverse=True)
        for _, (start, end, _, new) in ordered:
            lines[start:end] = new
        return "".join(lines)

    def _dumped(self, entry: Mapping[str, Any]) -> list[str]:
        """The lines of an entry, its dash in the column of the others."""
        lines = self._dump({"k": [CommentedMap(entry)]})[1:]
        here = len(lines[0]) - len(lines[0].lstrip())
        return [" " * (self._dash_column() - here) + line[max(0, here - self._dash_column()) :] for line in lines]

    def _key_lines(self, place: int, name: str, value: Any) -> list[str]:
        item = self._items[place]
        column = item.lc.key(next(iter(item)))[1]
        return [" " * column + line for line in self._dump({name: value})]

    def _dump(self, value: Any) -> list[str]:
        out = io.StringIO()
        self._yaml.dump(CommentedMap(value), out)
        return out.getvalue().splitlines(keepends=True)

    def _dash_column(self) -> int:
        if not self._starts:
            return 2
        line = self._lines[self._starts[0]]
        return len(line) - len(line.lstrip())

    def _dash_line(self, place: int) -> int:
        line = int(self._document[self._key].lc.item(place)[0])
        while line > 0 and not self._lines[line].lstrip().startswith("-"):
            line -= 1
        return line

    def _end(self, place: int) -> int:
        """The line after the entry's last one; comments and blank lines behind it are not its own."""
        start = self._starts[place]
        if place + 1 < len(self._starts):
            return self._trimmed(start, self._starts[place + 1])
        column, end = self._dash_column(), start + 1
        while end < len(self._lines) and (self._is_empty(end) or self._column(end) > column):
            end += 1
        return self._trimmed(start, end)

    def _trimmed(self, start: int, end: int) -> int:
        while end - 1 > start and self._is_empty(end - 1):
            end -= 1
        return end

    def _is_comment(self, line: int) -> bool:
        return self._lines[line].lstrip().startswith("#")

    def _is_empty(self, line: int) -> bool:
        return not self._lines[line].strip() or self._is_comment(line)

    def _column(self, line: int) -> int:
        return len(self._lines[line]) - len(self._lines[line].lstrip())
