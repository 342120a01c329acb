"""Tokens to a tree, by operator precedence (Pratt), with Python's precedences. No eval anywhere."""

from __future__ import annotations

from cudadiag.case.expr.functions import FUNCTIONS, suggestion
from cudadiag.case.expr.tokens import Token, number, string, tokenize
from cudadiag.case.expr.tree import (
    MAX_DEPTH,
    Binary,
    Call,
    Compare,
    ExpressionError,
    Group,
    Literal,
    Logic,
    Name,
    Node,
    Unary,
    children,
)

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})
_COMPARE = 4
_NOT = 3
_BINDING = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(_COMPARISONS, _COMPARE),
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
    "**": 12,
}
_SIGN = 11  # of unary - + ~: above *, below **
_WORDS = frozenset({"and", "or", "not", "in"})
_CONSTANTS = {"True": True, "False": False, "true": True, "false": False}


def parse_tree(text: str) -> Node:
    """The tree of one expression. Raises ExpressionError with the position of the mistake."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.position = 0
        self.depth = 0
        self.heights: dict[int, int] = {}  # id(node) -> height; the nodes stay alive in the tree being built

    def whole(self) -> Node:
        node = self.expression(0)
        token = self.peek()
        if token.kind != "end":
            raise self.unexpected(token)
        return node

    def peek(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def operator(self) -> str:
        """The binary operator that comes next, "" if none does; `not in` counts as one."""
        token = self.peek()
        if token.kind == "name" and token.text == "not" and self.tokens[self.position + 1].text == "in":
            return "not in"
        if token.kind == "op" or token.text in _WORDS:
            return token.text if token.text in _BINDING else ""
        return ""

    def take_operator(self, op: str) -> Token:
        token = self.take()
        if op == "not in":
            self.take()
        return token

    def expression(self, least: int) -> Node:
        """An expression whose operators bind more tightly than `least`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(self.peek().at)
        left = self.prefix(least)
        while (op := self.operator()) and _BINDING[op] > least:
            left = self.infix(left, op)
        self.depth -= 1
        return left

    def infix(self, left: Node, op: str) -> Node:
        if op in _COMPARISONS:
            return self.comparison(left)
        if op in ("and", "or"):
            return self.logic(left, op)
        token = self.take_operator(op)
        # ** binds to the right, and takes a sign on its right side: 2 ** -1.
        right = self.expression(_SIGN - 1 if op == "**" else _BINDING[op])
        return self.measured(Binary(op, left, right, token.at))

    def comparison(self, first: Node) -> Node:
        rest: list[tuple[str, Node, int]] = []
        while (op := self.operator()) in _COMPARISONS:
            token = self.take_operator(op)
            right = self.expression(_COMPARE)
            if op in ("in", "not in") and not isinstance(right, Group):
                raise ExpressionError(f"`{op}` needs a list on its right, such as [1, 2]", self.text, right.at)
            rest.append((op, right, token.at))
        return self.measured(Compare(first, tuple(rest), rest[0][2]))

    def logic(self, first: Node, op: str) -> Node:
        operands, at = [first], self.peek().at
        while self.operator() == op:
            self.take()
            operands.append(self.expression(_BINDING[op]))
        return self.measured(Logic(op, tuple(operands), at))

    def prefix(self, least: int) -> Node:
        token = self.take()
        match token.kind:
            case "int" | "float":
                return Literal(self.number(token), token.at)
            case "string":
                return Literal(string(token, self.text), token.at)
            case "name":
                return self.word(token, least)
            case "op" if token.text in ("-", "+", "~"):
                return self.measured(Unary(token.text, self.expression(_SIGN - 1), token.at))
            case "op" if token.text in ("(", "["):
                return self.bracket(token)
        raise self.unexpected(token)

    def number(self, token: Token) -> int | float:
        try:
            return number(token)
        except ValueError:  # Python's own limit on decimal digits
            raise ExpressionError(f"a number of {len(token.text)} digits", self.text, token.at) from None

    def word(self, token: Token, least: int) -> Node:
        if token.text == "not":
            if least >= _NOT:
                raise ExpressionError("`not` needs parentheses here", self.text, token.at)
            return self.measured(Unary("not", self.expression(_NOT - 1), token.at))
        if token.text in _WORDS:
            raise self.unexpected(token)
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.at)
        if self.peek().text == "(":
            return self.call(token)
        if token.text in FUNCTIONS:
            raise ExpressionError(
                f"{token.text} is a function: write {FUNCTIONS[token.text].usage}", self.text, token.at
            )
        return Name(token.text, token.at)

    def call(self, token: Token) -> Node:
        function = FUNCTIONS.get(token.text)
        if function is None:
            known = ", ".join(FUNCTIONS)
            message = f"no function {token.text!r}{suggestion(token.text, FUNCTIONS)}; there are {known}"
            raise ExpressionError(message, self.text, token.at)
        self.take()
        arguments, _ = self.items(")")
        if not function.least <= len(arguments) <= function.most:
            message = f"{token.text} got {len(arguments)} arguments: write {function.usage}"
            raise ExpressionError(message, self.text, token.at)
        return self.measured(Call(token.text, arguments, token.at))

    def bracket(self, token: Token) -> Node:
        closing = ")" if token.text == "(" else "]"
        items, comma = self.items(closing)
        if token.text == "(" and len(items) == 1 and not comma:
            return items[0]
        return self.measured(Group(items, token.at))

    def items(self, closing: str) -> tuple[tuple[Node, ...], bool]:
        """Expressions up to `closing` (taken too), and whether a comma was among them."""
        items: list[Node] = []
        comma = False
        while self.peek().text != closing or self.peek().kind != "op":
            if items and not comma:
                raise self.unexpected(self.peek(), f"a comma or {closing}")
            items.append(self.expression(0))
            comma = self.peek().text == "," and self.peek().kind == "op"
            if comma:
                self.take()
        self.take()
        return tuple(items), comma or len(items) > 1

    def measured(self, node: Node) -> Node:
        """The node, its height noted: long chains such as a+b+c+... grow deep without nesting in the text."""
        height = 1 + max((self.heights.get(id(child), 0) for child in children(node)), default=0)
        if height > MAX_DEPTH:
            raise self.too_deep(node.at)
        self.heights[id(node)] = height
        return node

    def too_deep(self, at: int) -> ExpressionError:
        return ExpressionError(
            f"more than {MAX_DEPTH} operations inside one another: split it with `derive:`", self.text, at
        )

    def unexpected(self, token: Token, wanted: str = "a value") -> ExpressionError:
        if token.kind == "end":
            message = f"the expression ends where {wanted} was expected"
        elif token.kind in ("name", "int", "float", "string") and wanted == "a value":
            message = f"{token.text} follows without an operator between"
            if token.text in _WORDS:
                message = f"{token.text!r} where a value was expected"
        else:
            message = f"{token.text!r} where {wanted} was expected"
        return ExpressionError(message, self.text, token.at)
