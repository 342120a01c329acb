"""A file in which people say which signatures are one bug, and which one stands for several.

version: 1
merge:
  - name: scratch overrun
    why: read back one kernel later
    signatures:
      - v1/fault/memory-access/attn
      - v1/wrong/-
split:
  - signature: v1/fault/memory-access/copy
    why: two callers, two bugs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cudadiag.errors import UsageError
from cudadiag.signature.key import VERSION, Signature

_MERGE_KEYS = frozenset({"name", "why", "signatures"})
_SPLIT_KEYS = frozenset({"signature", "why"})


@dataclass(frozen=True)
class Merge:
    """Signatures (fine or coarse) that are one bug, under one name."""

    name: str
    signatures: frozenset[str]
    why: str | None = None


@dataclass(frozen=True)
class Judgements:
    """What people decided. `splits` maps a coarse signature that stands for several bugs to the reason."""

    merges: tuple[Merge, ...] = ()
    splits: Mapping[str, str | None] | None = None

    def group(self, signature: Signature) -> str:
        """The group a signature belongs to: a merge's name, the fine key where its coarse one is split, else the
        coarse key."""
        for merge in self.merges:
            if signature.fine in merge.signatures or signature.coarse in merge.signatures:
                return merge.name
        return signature.fine if self.splits and signature.coarse in self.splits else signature.coarse


def read_judgements(text: str, path: str = "judgements") -> Judgements:
    """The judgements of a YAML text. Raises UsageError with `path:line: what is wrong` for anything else."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{line}: {getattr(problem, 'problem', None) or 'not YAML'}") from problem
    if document is None:
        return Judgements()
    if not isinstance(document, Mapping):
        raise UsageError(f"{path}: must hold the keys `merge` and `split`, not {type(document).__name__}")
    unknown = set(document) - {"version", "merge", "split"}
    if unknown:
        raise UsageError(f"{path}: unknown key {sorted(map(str, unknown))[0]!r}; known are version, merge, split")
    if document.get("version", 1) != 1:
        raise UsageError(f"{path}: version {document['version']!r} of the file is not known here; 1 is")
    merges = tuple(_merges(document.get("merge"), path))
    splits = dict(_splits(document.get("split"), path))
    _check_once(merges, path)
    return Judgements(merges, splits)


def _merges(entries: Any, path: str) -> Iterator[Merge]:
    for at, entry in enumerate(_list(entries, "merge", path), start=1):
        where = f"{path}: merge {at}"
        _check_keys(entry, _MERGE_KEYS, where)
        names = entry.get("signatures")
        if not isinstance(entry.get("name"), str) or not isinstance(names, list) or len(names) < 2:
            raise UsageError(f"{where}: needs `name` and at least two `signatures`")
        yield Merge(entry["name"], frozenset(_signature(name, where) for name in names), entry.get("why"))


def _splits(entries: Any, path: str) -> Iterator[tuple[str, str | None]]:
    for at, entry in enumerate(_list(entries, "split", path), start=1):
        where = f"{path}: split {at}"
        _check_keys(entry, _SPLIT_KEYS, where)
        yield _signature(entry.get("signature"), where), entry.get("why")


def _list(entries: Any, key: str, path: str) -> list[Any]:
    if entries is None:
        return []
    if isinstance(entries, list):
        return entries
    raise UsageError(f"{path}: `{key}` must be a list")


def _check_keys(entry: Any, known: frozenset[str], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: must be a mapping with the keys {', '.join(sorted(known))}")
    unknown = sorted(str(key) for key in entry if key not in known)
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _signature(name: Any, where: str) -> str:
    if isinstance(name, str) and name.startswith(f"v{VERSION}/"):
        return name
    raise UsageError(f"{where}: {name!r} is no signature of version {VERSION} (they begin with v{VERSION}/)")


def _check_once(merges: tuple[Merge, ...], path: str) -> None:
    seen: dict[str, str] = {}
    for merge in merges:
        for name in sorted(merge.signatures):
            if name in seen:
                raise UsageError(f"{path}: {name} is in two merges, {seen[name]!r} and {merge.name!r}")
            seen[name] = merge.name
