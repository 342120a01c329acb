"""The user's Python file as a module, and calling its functions with the names they take. Loaded by path in the child."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys


def load_function(path: str, name: str) -> object:
    """Function `name` of the file, imported as `python FILE` would find its neighbours.

    The file's folder goes first on `sys.path`; for a file inside a package the folder that holds the outermost package,
    and the module gets its dotted name, so that its relative imports work. Raises what the file raises, and AttributeError.
    """
    module = _load_module(os.path.abspath(path))
    target = module
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _load_module(path: str) -> object:
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
        raise ImportError("%s is not a Python file" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look their module up there
    spec.loader.exec_module(module)
    return module


def _is_file(module: object, path: str) -> bool:
    known = getattr(module, "__file__", None)
    return bool(known) and os.path.abspath(str(known)) == path


def call_with(function: object, offered: dict) -> object:
    """Call with those of the offered names that the function takes; all of them where it takes `**kwargs`.

    Raises TypeError naming what it wants and is not offered.
    """
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**offered)  # type: ignore[operator]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    missing = [p.name for p in named if p.default is p.empty and p.name not in offered]
    if missing:
        label = getattr(function, "__qualname__", "the function")
        raise TypeError("%s wants %s; offered are %s" % (label, ", ".join(missing), ", ".join(sorted(offered))))
    return function(**{p.name: offered[p.name] for p in named if p.name in offered})  # type: ignore[operator]
