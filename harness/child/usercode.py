"""The user's Python file as a module. Loaded by path in the child; Python >= 3.8, standard library only."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any


def load_function(path: str, name: str) -> Any:
    """Function `name` of the file, imported as `python FILE` would find its neighbours.

    The file's folder goes first on `sys.path`; for a file inside a package the folder that holds the outermost package,
    and the module gets its dotted name, so that its relative imports work.
    Raises what the file raises, and AttributeError.
    """
    module = _load_module(os.path.abspath(path))
    target = module
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _load_module(path: str) -> Any:
    folder, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    parts = [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = ".".join(parts)
    loaded = sys.modules.get(name)
    if loaded is not None and _is_file(loaded, path):
        return loaded
    if len(parts) > 1:
        return importlib.import_module(name)
    if loaded is not None:  # the user's json.py must not replace the one that is in use
        name = "cudadiag_user_" + stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look their module up there
    spec.loader.exec_module(module)
    return module


def _is_file(module: Any, path: str) -> bool:
    known = getattr(module, "__file__", None)
    return bool(known) and os.path.abspath(str(known)) == path
