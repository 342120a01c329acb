"""The syntax tree of the case language: small frozen nodes, each knowing where in the text it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cudadiag.errors import UsageError

MAX_TEXT = 4000
"""Characters of one expression."""
MAX_DEPTH = 100
"""Nesting of one expression: the evaluator recurses, and a deeper one is a mistake or an attack."""


class ExpressionError(UsageError):
    """A wrong expression. `offset` is the character of `text` (from 0) at which the mistake was seen."""

    def __init__(self, message: str, text: str, offset: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.offset = offset

    def pointed(self) -> str:
        """The message with the text below it and a caret under the mistake, for the command line."""
        return f"{self.message}\n    {self.text}\n    {' ' * self.offset}^"


@dataclass(frozen=True)
class Literal:
    value: int | float | str | bool
    at: int


@dataclass(frozen=True)
class Name:
    name: str
    at: int


@dataclass(frozen=True)
class Group:
    """A list or tuple, the right side of `in` or the one argument of `min` and `max`."""

    items: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Unary:
    op: str  # "-", "+", "~", "not"
    operand: Node
    at: int


@dataclass(frozen=True)
class Binary:
    op: str
    left: Node
    right: Node
    at: int  # of the operator


@dataclass(frozen=True)
class Compare:
    """`first op operand op operand ...`, each middle operand evaluated once, as in Python."""

    first: Node
    rest: tuple[tuple[str, Node, int], ...]
    at: int


@dataclass(frozen=True)
class Logic:
    """`and` or `or` over two or more operands, from the left, stopping early."""

    op: str
    operands: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    at: int


Node = Literal | Name | Group | Unary | Binary | Compare | Logic | Call


def children(node: Node) -> tuple[Node, ...]:
    """The operands of a node, from the left."""
    match node:
        case Group(items=nodes) | Logic(operands=nodes) | Call(arguments=nodes):
            return nodes
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Compare(first=first, rest=rest):
            return (first, *(operand for _, operand, _ in rest))
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Every node of a tree, parents first, in the order of the text."""
    yield node
    for child in children(node):
        yield from walk(child)
