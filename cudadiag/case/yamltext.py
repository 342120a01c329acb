"""YAML text to a tree in which every key and value knows its place, with YAML's traps found on the way.

Built on PyYAML's event stream: no constructor runs, so no tag can do anything; depth, size and the growth of aliases
are bounded.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cudadiag.case.problems import CaseError, Mark, Problem
from cudadiag.case.scalars import PlainValue, Trap, plain_scalar

MAX_BYTES = 256 << 10
MAX_NODES = 100_000
"""Nodes of a file with its aliases written out."""
MAX_DEPTH = 40


@dataclass(frozen=True)
class ScalarNode:
    value: PlainValue
    text: str
    mark: Mark
    quoted: bool
    one_line: bool
    trap: Trap | None = None


@dataclass(frozen=True)
class ListNode:
    items: tuple[YamlNode, ...]
    mark: Mark


@dataclass(frozen=True)
class MapNode:
    entries: tuple[tuple[ScalarNode, YamlNode], ...]
    mark: Mark


YamlNode = ScalarNode | ListNode | MapNode
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """A case file as plain data, with the place of every key and value by its path such as ("sweep", "q_len", 2)."""

    file: str
    data: Any
    problems: tuple[Problem, ...]
    values: dict[Path_, YamlNode] = field(repr=False)
    keys: dict[Path_, Mark] = field(repr=False)
    trapped: set[Path_] = field(repr=False)  # whose value YAML has not read as it was meant

    def mark(self, path: Path_) -> Mark:
        """Where the value at `path` stands, or the nearest one around it."""
        return self.values[self.known(path)].mark

    def key_mark(self, path: Path_) -> Mark:
        """Where the key of the value at `path` stands; an item of a list has its own place."""
        near = self.known(path)
        return self.keys.get(near, self.values[near].mark)

    def known(self, path: Path_) -> Path_:
        """The longest beginning of `path` that the file has."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.values:
                return path[:length]
        return ()


def offset_mark(document: Document, path: Path_, offset: int | None) -> Mark:
    """The place `offset` characters into the text at `path`; the text's own place where it is folded or escaped."""
    node = document.values[document.known(path)]
    if offset is None or not isinstance(node, ScalarNode) or not node.one_line or "\\" in node.text:
        return node.mark
    return Mark(node.mark.line, node.mark.column + offset + (1 if node.quoted else 0))


def read_bytes(path: Path) -> bytes:
    """The bytes of a case file. Raises CaseError if it cannot be read or is too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CaseError(str(path), [Problem(Mark(1, 1), f"cannot read it: {error.strerror or error}")]) from None
    if len(content) > MAX_BYTES:
        message = f"larger than {MAX_BYTES >> 10} KiB, a case file is a few lines: is it the right file?"
        raise CaseError(str(path), [Problem(Mark(1, 1), message)])
    return content


def parse_document(content: bytes, file: str) -> Document:
    """A Document from the bytes of a file; traps and duplicate keys are kept in it.

    Raises CaseError when they are not UTF-8 text with one YAML mapping.
    """
    root = _compose(_decode(content, file), file)
    if not isinstance(root, MapNode):
        message = "a case file is a mapping, its first line is such as `case: my_kernel`"
        raise CaseError(file, [Problem(root.mark, message)])
    document = Document(file, _plain(root), (), {}, {}, set())
    return dataclasses.replace(document, problems=tuple(_inspect(root, (), document)))


_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _decode(content: bytes, file: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        mark = Mark(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        message = f"byte 0x{content[error.start]:02x} is not UTF-8, save the file as UTF-8 text"
        raise CaseError(file, [Problem(mark, message)]) from None
    control = _CONTROL.search(text)
    if control is not None:
        at = control.start()
        message = f"control character U+{ord(text[at]):04X}, a case file is text: is it the right file?"
        raise CaseError(file, [Problem(Mark(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)), message)])
    return text


def _compose(text: str, file: str) -> YamlNode:
    try:
        return _Composer(file).run(text)
    except yaml.MarkedYAMLError as error:
        raise CaseError(file, [_syntax_problem(error, text)]) from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an escape beyond Unicode
        raise CaseError(file, [Problem(Mark(1, 1), f"not YAML: {str(error).splitlines()[0]}")]) from None


def _syntax_problem(error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)
    words = str(error.problem or error.context or "cannot be read").replace("u'", "'")
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    return Problem(place, f"not YAML: {words}{_syntax_advice(words, line, place.column)}")


def _syntax_advice(words: str, line: str, column: int) -> str:
    if "\t" in line[: len(line) - len(line.lstrip())] or line[column - 1 : column] == "\t":
        return ", indent with blanks, not tabs"
    if re.search(r"[^\s\[,:{]\{", line):
        return ", quote a text with braces: '--n={n}'"
    if "mapping values are not allowed" in words:
        return ", quote a text with a colon, or indent the line as its neighbours"
    if "could not find expected ':'" in words or "expected <block end>" in words:
        return ", is a colon missing, or a line indented otherwise than its neighbours?"
    if "cannot start any token" in words:
        return ", quote a text that begins with this character"
    return ", is a bracket or a quote not closed?" if "expected" in words or "found unexpected" in words else ""


@dataclass
class _Open:
    """A list or mapping whose end has not been seen."""

    mark: Mark
    is_map: bool
    anchor: str | None
    nodes_before: int
    flow: bool
    children: list[YamlNode] = field(default_factory=list)


class _Composer:
    def __init__(self, file: str) -> None:
        self.file = file
        self.nodes = 0
        self.anchors: dict[str, tuple[YamlNode, int] | None] = {}
        self.stack: list[_Open] = []
        self.root: YamlNode | None = None

    def run(self, text: str) -> YamlNode:
        documents = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.error(event, "a second document (`---`), a file holds one case")
            self.event(event)
        return self.root or ScalarNode(None, "", Mark(1, 1), False, True)

    def event(self, event: Any) -> None:
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            self.refuse_tag(event)
            self.grow(event, 1)
        if isinstance(event, yaml.ScalarEvent):
            self.add(self.scalar(event), event.anchor, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self.open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.close(event)
        elif isinstance(event, yaml.AliasEvent):
            self.alias(event)

    def error(self, event: Any, message: str) -> CaseError:
        return CaseError(self.file, [Problem(_mark(event), message)])

    def refuse_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag != "!":
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise self.error(event, f"the tag {tag}, leave it out: tags mean nothing here")

    def grow(self, event: Any, by: int) -> None:
        self.nodes += by
        if self.nodes > MAX_NODES:
            raise self.error(event, f"more than {MAX_NODES} values with the aliases written out, shorten it")

    def scalar(self, event: yaml.ScalarEvent) -> ScalarNode:
        plain = event.style is None and event.tag is None
        text = self.character_data(event)
        value, trap = plain_scalar(text) if plain else (text, None)
        in_flow = bool(self.stack) and self.stack[-1].flow
        if plain and trap is None and in_flow:
            trap = _cut_call(text)
        start, end = event.start_mark, event.end_mark
        one_line = bool(start and end and start.line == end.line and event.style not in ("|", ">"))
        return ScalarNode(value, text, _mark(event), event.style is not None, one_line, trap)

    def character_data(self, event: yaml.ScalarEvent) -> str:
        """The text of a scalar. Escapes may make what no file, name or argument can hold."""
        text = str(event.value)
        if not text.isascii():  # "\ud83d\ude00" is one character to JSON and two halves to YAML
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if "\ufffd" in text and "\ufffd" not in event.value:
                raise self.error(event, "half a character (a lone surrogate), write the character itself")
        if "\0" in text:
            raise self.error(event, "a NUL character, no name, file or argument can hold one: leave it out")
        return text

    def open(self, event: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self.error(event, f"lists or mappings more than {MAX_DEPTH} deep")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        is_map = isinstance(event, yaml.MappingStartEvent)
        self.stack.append(_Open(_mark(event), is_map, event.anchor, self.nodes - 1, bool(event.flow_style)))

    def close(self, event: Any) -> None:
        done = self.stack.pop()
        size = self.nodes - done.nodes_before
        if not done.is_map:
            self.add(ListNode(tuple(done.children), done.mark), done.anchor, size)
            return
        pairs = zip(done.children[::2], done.children[1::2], strict=True)
        entries = tuple((self.key(key), value) for key, value in pairs)
        self.add(MapNode(entries, done.mark), done.anchor, size)

    def key(self, key: YamlNode) -> ScalarNode:
        if isinstance(key, MapNode):
            advice = "a mapping as a key, quote a text that begins with a brace: '{name}'"
        elif isinstance(key, ListNode):
            advice = "a list as a key, a key is a name"
        elif key.text == "<<" and not key.quoted:
            advice = "the merge key <<, write the keys out: YAML 1.2 has no merge"
        else:
            return key
        raise CaseError(self.file, [Problem(key.mark, advice)])

    def alias(self, event: yaml.AliasEvent) -> None:
        name = str(event.anchor)
        if name not in self.anchors:
            advice = f"quote a text that begins with a star: '*{name}'"
            raise self.error(event, f"*{name} names no anchor, {advice}")
        found = self.anchors[name]
        if found is None:
            raise self.error(event, f"*{name} stands inside its own anchor, write the value out")
        node, size = found
        self.grow(event, size)
        self.add(node, None, size)

    def add(self, node: YamlNode, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (node, size)
        if self.stack:
            self.stack[-1].children.append(node)
        else:
            self.root = node


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


def _cut_call(text: str) -> Trap | None:
    """`min(a` of the flow list `[min(a, b) < 4]`: YAML has cut the call at its comma."""
    if text.count("(") == text.count(")"):
        return None
    readings = f"{text!r} has a bracket without its partner: YAML cuts a call at its comma"
    return Trap(readings, 'quote the whole, such as "min(a, b) < 4"', cut=True)


def _plain(node: YamlNode) -> Any:
    match node:
        case ScalarNode(value=value):
            return value
        case ListNode(items=items):
            return [_plain(item) for item in items]
        case MapNode(entries=entries):
            return {key.text: _plain(value) for key, value in entries}


def _inspect(node: YamlNode, path: Path_, document: Document) -> Iterator[Problem]:
    """Note every place, and yield the traps and duplicate keys."""
    document.values[path] = node
    if isinstance(node, ScalarNode):
        if node.trap is not None and not (node.trap.exponent and _takes_reals(path)):
            yield from _trapped(node, path, document)
    elif isinstance(node, ListNode):
        for index, item in enumerate(_with_whole_calls(node.items)):
            yield from _inspect(item, (*path, index), document)
    else:
        yield from _inspect_entries(node, path, document)


def _with_whole_calls(items: tuple[YamlNode, ...]) -> Iterator[YamlNode]:
    """The items; the first piece of a cut call with advice that shows the call put together again."""
    for index, item in enumerate(items):
        if isinstance(item, ScalarNode) and item.trap is not None and item.trap.cut:
            whole = item.text
            for piece in items[index + 1 :]:
                if not isinstance(piece, ScalarNode) or whole.count("(") <= whole.count(")"):
                    break
                whole += f", {piece.text}"
            if whole.count("(") == whole.count(")"):
                item = dataclasses.replace(
                    item, trap=dataclasses.replace(item.trap, write=f'quote the whole: "{whole}"')
                )
        yield item


def _trapped(node: ScalarNode, path: Path_, document: Document) -> Iterator[Problem]:
    """The problem of a trap. A call cut in pieces spoils the list around it, and is one problem however many pieces."""
    spoilt = path[:-1] if node.trap is not None and node.trap.cut else path
    if node.trap is not None and spoilt not in document.trapped:
        document.trapped.add(spoilt)
        yield Problem(node.mark, node.trap.advice)


def _inspect_entries(node: MapNode, path: Path_, document: Document) -> Iterator[Problem]:
    seen: dict[str, Mark] = {}
    for key, value in node.entries:
        below = (*path, key.text)
        if key.trap is not None:
            yield from _trapped(key, below, document)
        elif key.text in seen:
            yield Problem(key.mark, f"duplicate key {key.text!r}, first in line {seen[key.text].line}: keep one")
        seen.setdefault(key.text, key.mark)
        document.keys[below] = key.mark
        yield from _inspect(value, below, document)


_REAL_PARENTS = frozenset({"tolerance", "limits"})
_REAL_KEYS = frozenset({"mean", "std", "low", "high", "value"})


def _takes_reals(path: Path_) -> bool:
    """Whether only a real number can stand here, so that `1e-4` cannot be misread."""
    return bool(_REAL_PARENTS.intersection(path)) or (bool(path) and path[-1] in _REAL_KEYS and "args" in path)
