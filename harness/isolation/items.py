"""Tests as the parent knows them: a node id, a place, and what their marks ask of the isolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.isolation.child.wire import Message

Key = tuple[str, int]


class RemoteItem(pytest.Item):
    """Stands for a test that a child collected. Its node id carries pytest-xdist's group where xdist wants it.

    `key` names it in every child: the child's node id, and which one of that id it is.
    """

    def __init__(self, *, told: Message, key: Key, grouped: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key = key
        self.mode: str | None = told["mode"]
        self.timeout_s: float | None = told["timeout"]
        self.tool: str | None = told["tool"]
        self.xfail: str | None = told["xfail"]
        file, line, domain = told["location"]
        self._place = (str(file), line, str(domain))
        self._shown = f"{key[0]}@{told['group']}" if grouped and told["group"] else key[0]

    @property
    def nodeid(self) -> str:
        return self._shown

    @property
    def location(self) -> tuple[str, int | None, str]:
        return self._place

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self._place[1], self._place[2]

    def runtest(self) -> None:
        raise RuntimeError(f"{self.nodeid} runs in a child process only")


def keys(told: list[Message]) -> list[Key]:
    """The key of each collected test, in order."""
    counts: dict[str, int] = {}
    found = []
    for message in told:
        nodeid = message["nodeid"]
        found.append((nodeid, counts.get(nodeid, 0)))
        counts[nodeid] = counts.get(nodeid, 0) + 1
    return found


def unmarked(nodeid: str) -> Message:
    """What a child would tell of a test without marks."""
    nothing = dict.fromkeys(("mode", "timeout", "tool", "xfail", "group"))
    return {"nodeid": nodeid, "location": (nodeid.partition("::")[0], None, nodeid), **nothing}


def make_items(session: pytest.Session, told: list[Message]) -> list[RemoteItem]:
    grouped = bool(getattr(session.config.option, "loadgroup", False))
    return [_make(session, message, key, grouped) for message, key in zip(told, keys(told), strict=True)]


def _make(session: pytest.Session, told: Message, key: Key, grouped: bool) -> RemoteItem:
    nodeid = key[0]
    item: RemoteItem = RemoteItem.from_parent(
        session, name=nodeid.rpartition("::")[2] or nodeid, told=told, key=key, grouped=grouped
    )
    path = session.config.rootpath / nodeid.partition("::")[0]
    if path.exists():  # so that hooks of a conftest.py apply that the parent has loaded
        item.path = path
    return item
