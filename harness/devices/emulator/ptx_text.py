"""Pieces of PTX text: operands, constants, variable declarations."""

from __future__ import annotations

import re

from .ptx import WIDTH, Addr, Group, Imm, Operand, Pair, PtxError, Reg, Sink, Sym, Variable, Vec

_VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(global|const|shared|local|param|reg)\b(.*?)\.(\w+)\s+((?:\.ptr\b|\.(?:global|shared|const|local)\b|\.align\s+\d+|\s)*)"
    r"([\w$%.]+)\s*((?:\[\s*\w*\s*\]\s*)*)(?:=\s*(.*))?$",
    re.S,
)
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})$|0[dD]([0-9a-fA-F]{16})$")
_INT = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?$")


def split(text: str, separator: str = ",") -> list[str]:
    """`text` cut at top-level separators: those inside brackets do not count."""
    parts: list[str] = []
    depth = start = 0
    for index, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def number(text: str) -> Imm | None:
    """A PTX constant, None if `text` is none."""
    found = _FLOAT.match(text)
    if found:
        return Imm(int(found[1], 16), "f32") if found[1] else Imm(int(found[2], 16), "f64")
    found = _INT.match(text)
    if not found:
        return None
    digits = found[2]
    base = 16 if digits[:2] in ("0x", "0X") else 2 if digits[:2] in ("0b", "0B") else 8 if digits[0] == "0" else 10
    value = int(digits, base)
    return Imm(-value if found[1] == "-" else value)


def operand(text: str) -> Operand:
    """One operand. Names starting with `%` (and names declared with `.reg`, renamed to start with it) are registers."""
    if text == "_":
        return Sink()
    if text[0] == "{":
        return Vec(tuple(operand(t) for t in split(text[1:-1])))
    if text[0] == "(":
        return Group(tuple(operand(t) for t in split(text[1:-1])))
    if text[0] == "[":
        parts = split(text[1:-1])
        return _address(parts[0]) if len(parts) == 1 else Vec(tuple(operand(t) for t in parts))
    if "|" in text:
        first, second = text.split("|", 1)
        return Pair(operand(first.strip()), operand(second.strip()))
    if text[0] == "!":
        return Reg(text[1:].strip(), negated=True)
    if text[0] == "%":
        return Reg(text)
    return number(text) or _symbol(text)


def _symbol(text: str) -> Sym:
    plain = re.sub(r"generic\s*\(([^()]*)\)", r"\1", text)  # also as in generic(name)+8
    name, _, offset = plain.partition("+")
    return Sym(name.strip(), int(offset, 0) if offset.strip() else 0)


def _address(text: str) -> Addr:
    found = re.match(r"\s*([%$\w.]+)\s*(?:([+-])\s*(-?\w+))?\s*$", text)
    if not found:
        raise PtxError(f"address [{text}]")
    offset = number(found[3]) if found[3] else Imm(0)
    if offset is None:
        raise PtxError(f"address [{text}]")
    base = operand(found[1])
    assert isinstance(base, (Reg, Sym, Imm))
    return Addr(base, -offset.value if found[2] == "-" else offset.value)


def variable(text: str) -> Variable:
    """A variable or parameter declaration, without its semicolon."""
    found = _VARIABLE.match(text.strip())
    if not found or found[3] not in WIDTH:
        raise PtxError(f"declaration {' '.join(text.split())[:80]!r}")
    space, attributes, kind, _, name, dims, init = found.groups()
    item = max(WIDTH[kind] // 8, 1)
    lanes = re.search(r"\.v([248])\b", attributes)
    item *= int(lanes[1]) if lanes else 1
    size = item
    for extent in re.findall(r"\[\s*(\w*)\s*\]", dims):
        size *= int(extent, 0) if extent else 0
    align = re.search(r"\.align\s+(\d+)", attributes)
    items = _initialiser(init) if init else ()
    if init and dims and size == 0:
        size = item * len(items)
    return Variable(name, space, kind, int(align[1]) if align else item, size, items, bool(dims))


def _initialiser(text: str) -> tuple[Imm | Sym, ...]:
    items: list[Imm | Sym] = []
    for part in split(text.replace("{", " ").replace("}", " ")):
        items.append(number(part) or _symbol(part))
    return tuple(items)
