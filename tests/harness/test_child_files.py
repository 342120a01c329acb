"""What runs in the user's interpreter stays within Python 3.8 and the standard library, and never imports us by
name."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import harness

ROOT = Path(harness.__file__).parent
OWN = [ROOT / name for name in ("worker.py", "inner.py", "guardian_main.py")]
DEVICES = [ROOT / "devices" / name for name in ("interface.py", "cuda.py", "cubin.py", "compiler.py")]
FILES = sorted([*OWN, *DEVICES, *(ROOT / "child").glob("*.py")])


def imported(tree: ast.Module) -> set[str]:
    """Top-level packages that a file imports when it is loaded (not inside functions, not for type checking)."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a file loaded by path has no package to be relative to"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_child_file_is_plain_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    assert imported(tree) <= set(sys.stdlib_module_names)
    everywhere = {name for node in ast.walk(tree) for name in names_of(node)}
    assert not {name for name in everywhere if name.partition(".")[0] in ("harness", "cudadiag")}


def names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
