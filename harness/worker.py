"""The child side of a probe: reads one JSON request, announces each step before taking it, runs the target.

Started by file path in the user's interpreter (`python -u worker.py request.json`), which need not have cudadiag
installed: Python >= 3.8, standard library only; everything else of ours is loaded by path from `child/` and `devices/`.
"""

from __future__ import annotations

import sys


def _leave_own_folder() -> None:
    """Our folder, which Python put first on the path, would offer its modules under the user's names."""
    own = __file__.rpartition("/")[0]
    if sys.path and sys.path[0] == own:
        del sys.path[0]


_leave_own_folder()

import faulthandler  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import time  # noqa: E402

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name: str, *parts: str) -> ModuleType:
    """One of our own files as a module, by path: never `import harness`, which may be the user's.

    The folder of the user's own modules is put on the path only when the target is imported, and a runner loads all
    that it needs before: until then nothing of theirs can be taken for the standard library's.
    """
    full = "cudadiag_" + name
    if full not in sys.modules:
        path = os.path.join(HERE, *parts)
        package = [os.path.dirname(path)] if parts[-1] == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(full, path, submodule_search_locations=package)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


class Reporter:
    """Writes breadcrumbs and results as JSON lines, each in one system call, so that a crash cuts none."""

    def __init__(self, channel: dict[str, Any]) -> None:
        self._started_s = channel["started_s"]
        self._fd = self._open(channel)
        self.step = "import"

    @staticmethod
    def _open(channel: dict[str, Any]) -> int:
        try:
            if os.fstat(channel["fd"]).st_ino == channel["inode"]:
                os.set_inheritable(channel["fd"], False)  # what the target starts must not hold it open
                return int(channel["fd"])
        except OSError:  # a tool between closed it
            pass
        return os.open(channel["file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, message: dict[str, Any]) -> None:
        data = memoryview((json.dumps(message, default=repr) + "\n").encode("utf-8", "backslashreplace"))
        while data:
            data = data[os.write(self._fd, data) :]

    def crumb(self, step: str, detail: dict[str, Any] | None = None) -> None:
        """Announce a step just before taking it."""
        self.step = step
        self.write({"step": step, "at_s": time.monotonic() - self._started_s, "detail": detail or {}})

    def result(self, **facts: object) -> None:
        self.write({"result": facts})

    def device(self, facts: dict[str, Any]) -> None:
        self.write({"device": facts})

    def records(self, records: list[Any]) -> None:
        self.write({"records": records})


def limit_memory(nbytes: int | None) -> None:
    if nbytes is not None:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (nbytes, hard))


def main() -> int:
    if not faulthandler.is_enabled():
        faulthandler.enable(all_threads=True)
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    report = Reporter(request["result"])
    limit_memory(request["memory_bytes"])
    kind = request["target"]["kind"]
    runner = load(kind + "_target", "child", kind + "_target.py")
    return int(runner.run(request, report, load))


if __name__ == "__main__":
    sys.exit(main())
