"""What can be known of a Python function without importing its file: which parameters it takes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from pathlib import Path

from cudadiag.case.expr import suggestion


def default_kwargs(
    file: Path, function: str, parameters: Sequence[str], derived: Collection[str]
) -> tuple[list[str], str | None]:
    """The keyword arguments for a function when the case names none, and what is wrong, if anything.

    All `parameters` where it takes `**kwargs` or is not defined in the file itself (imported, say); else those of
    `parameters` and `derived` that it takes by name.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return list(parameters), None  # the probe will say it better than we can
    found = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == function]
    if not found:
        return list(parameters), _undefined(tree, function, file)
    arguments = found[-1].args
    if arguments.kwarg is not None:
        return list(parameters), None
    known = [*parameters, *derived]
    takes = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    needs = takes[: len(arguments.args) - len(arguments.defaults)]
    needs += [a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None]
    for name in needs:
        if name not in known:
            near = suggestion(name, known) or f", there are {', '.join(known) or 'none'}"
            return [], f"{function} takes {name!r}, which is no parameter{near}"
    return [name for name in takes if name in known], None


def _undefined(tree: ast.Module, function: str, file: Path) -> str | None:
    """A function that the file neither defines nor could have got from elsewhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return None
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    if function in names:
        return None
    known = suggestion(function, names) or f", it has {', '.join(sorted(names)) or 'nothing'}"
    return f"{file.name} defines no {function!r}{known}"
