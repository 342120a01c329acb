"""PTX text -> the dataclasses of `ptx`. Knows what NVRTC and Triton write, in both dialects; the rest is a PtxError."""

from __future__ import annotations

import re

from .ptx import WIDTH, Function, Instruction, Label, Loc, Module, Prototype, PtxError, Reg, Variable
from .ptx_text import operand, split, variable

_SKIPPED = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
_FUNCTION = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)*\.(entry|func)\b")
_HEAD = re.compile(r"\.(?:entry|func)\s*(?:\.noreturn\s*)?(?:\(([^()]*)\))?\s*([\w$]+)\s*(?:\((.*?)\))?([^()]*)$", re.S)
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+([\w$]+)(?:\s*\+\s*(\d+))?\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
_WORD = re.compile(r"[%$\w]+")
_IGNORED = (".pragma", ".version", ".target", ".address_size", ".alias", ".noreturn")


def parse(text: str) -> Module:
    """A PTX text as a Module. Raises PtxError, with the line, for what it cannot read."""
    return _Reader(text).read()


def outline(text: str) -> Module:
    """As `parse`, but every function body is left empty: enough to load a module whose code is cached."""
    return _Reader(text, bodies=False).read()


class _Reader:
    """Module level: variables, functions, file table, the strings of `.debug_str`."""

    def __init__(self, text: str, bodies: bool = True) -> None:
        self.bodies = bodies
        self.text = _SKIPPED.sub(_blank, text.replace("\0", ""))
        self.strings = _debug_strings(self.text)
        self.files = {
            int(n): name for n, name in re.findall(r'^\s*\.file\s+(\d+)\s+"((?:\\.|[^"\\])*)"', self.text, re.M)
        }
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def read(self) -> Module:
        version = re.search(r"\.version\s+([\d.]+)", self.text)
        target = re.search(r"\.target\s+(\w+)", self.text)
        if not version or not target:
            raise PtxError("no .version and .target: this is not PTX")
        position = 0
        while position < len(self.text):
            position = self._item(position)
        return Module(version[1], target[1], self.variables, self.functions)

    def _item(self, position: int) -> int:
        blank = re.compile(r"[\s;]+").match(self.text, position)
        if blank:
            return blank.end()
        if self.text.startswith(".section", position):
            close = self.text.find("}", position)
            return close + 1 if close >= 0 else len(self.text)
        if _FUNCTION.match(self.text, position):
            return self._function(position)
        if self.text.startswith((".file", ".version", ".target", ".address_size"), position):
            return self._until("\n", position)
        end = self._until(";", position)
        statement = self.text[position:end]
        if not statement.startswith(_IGNORED):
            try:
                found = variable(statement)
            except PtxError as error:
                raise PtxError(f"line {self.line_of(position)}: {error}") from None
            if found.size or found.name not in self.variables:
                self.variables[found.name] = found
        return end

    def _until(self, mark: str, position: int) -> int:
        end = self.text.find(mark, position)
        return len(self.text) if end < 0 else end

    def _function(self, position: int) -> int:
        brace, semicolon = self._until("{", position), self._until(";", position)
        end = min(brace, semicolon)
        head = self.text[position:end]
        found = _HEAD.search(head)
        if not found:
            raise PtxError(f"line {self.line_of(position)}: function header {head[:80]!r}")
        returns = tuple(variable(p) for p in split(found[1] or ""))
        params = tuple(variable(p) for p in split(found[3] or ""))
        entry = ".entry" in head[: found.start(2)]
        if semicolon < brace:
            self.functions.setdefault(found[2], Function(found[2], entry, params, returns))
            return semicolon + 1
        close = _closing(self.text, brace)
        if close < 0:
            raise PtxError(f"line {self.line_of(position)}: function {found[2]} is not closed")
        body = _Body(self, brace + 1, close)
        if self.bodies:
            body.read()
        self.functions[found[2]] = Function(
            found[2], entry, params, returns, tuple(body.items), body.variables, body.registers, body.ranges,
            body.tables, body.prototypes, _directives(found[4]),
        )  # fmt: skip
        return close + 1


class _Body:
    """A function body. Names declared inside nested braces are made unique, so the result is flat."""

    def __init__(self, reader: _Reader, start: int, end: int) -> None:
        self.reader, self.text, self.position, self.end = reader, reader.text, start, end
        self.line = reader.line_of(start)
        self.counted = start
        self.items: list[Instruction | Label] = []
        self.variables: dict[str, Variable] = {}
        self.registers: dict[str, int] = {}
        self.ranges: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.scopes: list[dict[str, str]] = [{}]
        self.renamed = 0
        self.loc: Loc | None = None
        self.placed: dict[tuple[int, int, int], Loc] = {}

    def read(self) -> None:
        skip = re.compile(r"[\s;]*")
        while True:
            found = skip.match(self.text, self.position)
            self.position = found.end() if found else self.position
            if self.position >= self.end:
                return
            self.line += self.text.count("\n", self.counted, self.position)
            self.counted = self.position
            try:
                self._item()
            except (PtxError, ValueError, AssertionError, IndexError, KeyError) as error:
                raise PtxError(f"line {self.line}: {error}") from None

    def _item(self) -> None:
        char = self.text[self.position]
        if char in "{}":
            self.scopes.append({}) if char == "{" else self.scopes.pop()
            self.position += 1
            return
        if self.text.startswith(".loc", self.position) and self.text[self.position + 4].isspace():
            end = self.text.find("\n", self.position)
            self._place(self.text[self.position : end])
            self.position = end
            return
        label = _LABEL.match(self.text, self.position)
        if label:
            self.position = label.end()
            self._label(label[1])
            return
        end = self.text.find(";", self.position)
        statement = self.text[self.position : end].strip()
        self.position = end + 1
        self._statement(statement)

    def _place(self, text: str) -> None:
        found = _LOC.match(text)
        if not found:
            raise PtxError(text)
        key = (int(found[1]), int(found[2]), int(found[3]))
        if key[1] == 0:  # made by the compiler: the previous line stays
            return
        function = self.reader.strings.get((found[4], int(found[5] or 0))) if found[4] else None
        parent = self.placed.get((int(found[6]), int(found[7]), int(found[8]))) if found[4] else None
        if found[4] and parent is None:
            parent = Loc(self.reader.files.get(int(found[6]), ""), int(found[7]), int(found[8]))
        self.loc = Loc(self.reader.files.get(key[0], ""), key[1], key[2], function, parent)
        self.placed[key] = self.loc

    def _label(self, name: str) -> None:
        rest = re.compile(r"\s*\.(branchtargets|callprototype)\b").match(self.text, self.position)
        if not rest:
            self.items.append(Label(self._resolve(name)))
            return
        end = self.text.find(";", self.position)
        body = self.text[rest.end() : end].strip()
        self.position = end + 1
        if rest[1] == "branchtargets":
            self.tables[name] = tuple(self._resolve(t) for t in split(body))
            return
        found = re.match(r"(?:\(([^()]*)\))?\s*_\s*(?:\((.*)\))?", body, re.S)
        if not found:
            raise PtxError(f".callprototype {body}")
        returns = tuple(variable(p) for p in split(found[1] or ""))
        self.prototypes[name] = Prototype(returns, tuple(variable(p) for p in split(found[2] or "")))

    def _statement(self, text: str) -> None:
        if text.startswith(".reg"):
            self._registers(text)
        elif text.startswith((".param", ".local", ".shared", ".const", ".global")):
            found = variable(text)
            name = self._declare(found.name)
            self.variables[name] = Variable(
                name, found.space, found.type, found.align, found.size, found.init, found.array
            )
        elif not text.startswith("."):
            self.items.append(self._instruction(text))
        elif not text.startswith(_IGNORED):
            raise PtxError(f"directive {text[:60]!r}")

    def _declare(self, name: str, register: bool = False) -> str:
        """The unique name of something declared here. A register's unique name starts with `%`."""
        unique = name
        if len(self.scopes) > 1:
            self.renamed += 1
            unique = f"{name}_s{self.renamed}_"
        if register and not unique.startswith("%"):
            unique = "%" + unique
        if unique != name:
            self.scopes[-1][name] = unique
        return unique

    def _registers(self, text: str) -> None:
        found = re.match(r"\.reg\s*\.(\w+)\s+(.*)$", text, re.S)
        if not found:
            raise PtxError(text)
        width = WIDTH[found[1]]
        for name in split(found[2]):
            ranged = re.match(r"([%$\w]+)<\s*(\d+)\s*>$", name)
            if not ranged:
                self.registers[self._declare(name, register=True)] = width
            elif len(self.scopes) == 1 and ranged[1].startswith("%"):
                self.ranges[ranged[1]] = width
            else:
                for index in range(int(ranged[2])):
                    self.registers[self._declare(f"{ranged[1]}{index}", register=True)] = width

    def _resolve(self, text: str) -> str:
        """`text` with the names that inner scopes declared replaced by their unique names."""
        if not any(self.scopes):
            return text

        def unique(found: re.Match[str]) -> str:
            for scope in reversed(self.scopes):
                if found[0] in scope:
                    return scope[found[0]]
            return found[0]

        return _WORD.sub(unique, text)

    def _instruction(self, text: str) -> Instruction:
        guard = None
        found = re.match(r"@\s*(!?)\s*([%\w$]+)\s+", text)
        if found:
            guard = Reg(self._resolve(found[2]), negated=bool(found[1]))
            text = text[found.end() :]
        name, _, rest = text.partition(" ") if not re.search(r"\s", text) else re.split(r"(\s)", text, maxsplit=1)
        opcode, *mods = name.split(".")
        operands = tuple(operand(t) for t in split(self._resolve(rest)))
        return Instruction(opcode, tuple(mods), operands, guard, self.loc, self.line)


def _blank(found: re.Match[str]) -> str:
    """A comment as blank text with the same line breaks; strings stay."""
    return found[0] if found[0].startswith('"') else " " + "\n" * found[0].count("\n")


def _closing(text: str, brace: int) -> int:
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, brace):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return -1


def _directives(text: str) -> dict[str, tuple[int, ...]]:
    found = re.findall(r"\.(\w+)\s*([\d,\s]*)", text)
    return {name: tuple(int(v) for v in re.findall(r"\d+", values)) for name, values in found}


def _debug_strings(text: str) -> dict[tuple[str, int], str]:
    """(label, offset) -> text, from `.section .debug_str`: the names of inlined functions."""
    strings: dict[tuple[str, int], str] = {}
    for body in re.findall(r"\.section\s+\.debug_str\s*\{(.*?)\}", text, re.S):
        for label, items in re.findall(r"([$\w]+)\s*:((?:\s*\.b8\s+[\d,\s]+)+)", body):
            data = bytes(int(v) & 255 for v in re.findall(r"(?<![\w.])\d+", items))
            start = 0
            for piece in data.split(b"\0"):
                strings[label, start] = piece.decode("utf-8", "replace")
                start += len(piece) + 1
    return strings
