"""The child's program: `python main.py FOLDER`. Reads FOLDER/start.json, then is a pytest session under orders.

Run by file path; the parent's own sys.path replaces this one's, so that imports work as in the parent.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "cudadiag_isolation_child"
_NOT_ORDERLY = 70
_HERE = Path(__file__).parent


def load(name: str, file: Path, **options: Any) -> ModuleType:
    """A module by its file, under a name that no package of the user's has."""
    spec = importlib.util.spec_from_file_location(name, file, **options)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    folder = Path(sys.argv[1])
    start = json.loads((folder / "start.json").read_text())
    sys.path[:] = start["sys_path"]
    sys.argv[:] = start["argv"]
    # Works with a main thread stuck in C code too, where no Python handler would ever run.
    dump = os.open(folder / "stacks", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    faulthandler.register(start["dump_signal"], file=dump, all_threads=True)
    load(PACKAGE, _HERE / "__init__.py", submodule_search_locations=[str(_HERE)])
    session = importlib.import_module(f"{PACKAGE}.session")
    import pytest

    child = session.ChildPlugin(folder, start)
    status = int(pytest.main(start["args"], plugins=[child, session.BadCollectors(start["bad_collectors"])]))
    return 0 if child.orderly else status or _NOT_ORDERLY


if __name__ == "__main__":
    sys.exit(main())
