"""The expression language of case files: Python's operators over integers of any size, floats, texts and booleans.

`parse(text)` gives an `Expression`; `expression.evaluate(values)` its value for one shape, `expression.names` what it
needs. Every error is an `ExpressionError` with the offset of the mistake. Nothing is handed to Python's own evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cudadiag.case.expr.evaluate import evaluate_tree, unknown_name
from cudadiag.case.expr.functions import FUNCTIONS, RESERVED, suggestion
from cudadiag.case.expr.parser import parse_tree
from cudadiag.case.expr.tree import ExpressionError, Name, Node, walk

__all__ = ["FUNCTIONS", "RESERVED", "Expression", "ExpressionError", "constant", "parse", "suggestion"]


@dataclass(frozen=True)
class Expression:
    """A parsed expression and the text it came from."""

    text: str
    tree: Node

    @property
    def names(self) -> frozenset[str]:
        """The free names: parameters and derived quantities it needs."""
        return frozenset(node.name for node in walk(self.tree) if isinstance(node, Name))

    def check_names(self, known: Mapping[str, Any]) -> None:
        """Raises ExpressionError at the first name that is not in `known`."""
        for node in walk(self.tree):
            if isinstance(node, Name) and node.name not in known:
                raise unknown_name(node, known, self.text)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Its value. Raises ExpressionError (unknown name, wrong type, division by zero, a result too large)."""
        return evaluate_tree(self.tree, values, self.text)


def parse(text: str) -> Expression:
    """An expression from its text. Raises ExpressionError."""
    return Expression(text, parse_tree(text))


def constant(value: int | float | bool) -> Expression:
    """The expression of a plain number of a case file."""
    text = repr(value)
    return Expression(text, parse_tree(text))
