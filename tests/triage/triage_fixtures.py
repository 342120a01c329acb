"""The log fixtures: files of blocks `#### name | {expected}` followed by the text of a made-up log in real wordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "logs"
HEAD = "#### "


@dataclass(frozen=True)
class LogFixture:
    """A log and what must be said of it."""

    name: str
    family: str
    text: str
    expected: dict[str, Any]

    @property
    def data(self) -> bytes:
        return self.text.encode()


def log_fixtures() -> list[LogFixture]:
    """All fixtures of all families."""
    return [fixture for path in sorted(FOLDER.glob("*.logs")) for fixture in _of_file(path)]


def _of_file(path: Path) -> list[LogFixture]:
    found = []
    for block in ("\n" + path.read_text(encoding="utf-8")).split("\n" + HEAD)[1:]:
        head, _, text = block.partition("\n")
        name, _, expected = head.partition(" | ")
        found.append(LogFixture(name, path.stem, text.rstrip("\n") + "\n", yaml.safe_load(expected)))
    return found
