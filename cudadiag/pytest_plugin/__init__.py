"""The pytest plugin (entry point `pytest11`): tests in child processes that are replaced once they are poisoned.

Off until asked with `--cuda-isolate` or the ini value `cuda_isolate`; until then it imports nothing but pytest, and
never `harness`, a name that the tests may have a package of their own for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.isolation.controller import Controller
    from harness.isolation.items import RemoteItem

DEFAULT_TIMEOUT_S = 600.0
_CONTROLLER = pytest.StashKey["Controller"]()
_MARKERS = (
    "cuda_isolate(mode, timeout=seconds, poisons=False): with cudadiag's isolation on, `each` gives this test a process"
    " of its own, `none` leaves out the check after it; poisons=True: it may leave the process poisoned",
    "cuda_sanitize(*tools): with --cuda-sanitize=TOOL this test runs under compute-sanitizer; no name: under any tool",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuda isolation")
    group.addoption(
        "--cuda-isolate", choices=("auto", "each", "none"), default=None,
        help="auto: run tests in one child process, checked after each test and replaced once it is poisoned, dead or "
        "hung; each: a process for each test; none (default): off",
    )  # fmt: skip
    group.addoption(
        "--cuda-timeout", type=float, default=None, metavar="SECONDS",
        help=f"a test with its fixtures that takes longer hangs (default {DEFAULT_TIMEOUT_S:.0f}; 0: no limit)",
    )  # fmt: skip
    group.addoption(
        "--cuda-sanitize", choices=("memcheck", "racecheck", "initcheck", "synccheck"), default=None,
        help="run tests marked cuda_sanitize under this tool of compute-sanitizer, a process for each",
    )  # fmt: skip
    group.addoption(
        "--cuda-canaries", action="store_true", default=False,
        help="keep small buffers of a known pattern in device memory and look at them after each test",
    )  # fmt: skip
    parser.addini("cuda_isolate", "the default of --cuda-isolate", default="none")
    parser.addini("cuda_timeout", "the default of --cuda-timeout", default="")
    parser.addini("cuda_health", "module:function that returns what is wrong with the process, or nothing", default="")


def pytest_configure(config: pytest.Config) -> None:
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    mode = _mode(config)
    if mode == "none" or _is_child(config) or config.getoption("collectonly", False):
        return
    settings = _load("harness.isolation.settings")
    settings.check(config)
    if settings.is_distributing(config):
        return
    chosen = settings.Settings(
        mode=mode, timeout_s=_timeout_s(config), tool=config.getoption("--cuda-sanitize"),
        health=config.getini("cuda_health") or None, canaries=config.getoption("--cuda-canaries"),
        inherit_output=config.getoption("capture") == "no",
    )  # fmt: skip
    naming = _load("cudadiag.pytest_plugin.naming")
    controller = _load("harness.isolation.controller").Controller(config, chosen, naming.name)
    config.stash[_CONTROLLER] = controller
    config.pluginmanager.register(controller, "cudadiag-isolation")


def _mode(config: pytest.Config) -> str:
    """The option, else the ini value; a sanitizer alone asks for `auto`, since marked tests need their own process."""
    mode = config.getoption("--cuda-isolate") or config.getini("cuda_isolate")
    if mode not in ("auto", "each", "none"):
        raise pytest.UsageError(f"cuda_isolate = {mode!r}: it must be auto, each or none")
    if config.getoption("--cuda-sanitize") and mode == "none":
        if config.getoption("--cuda-isolate"):
            raise pytest.UsageError("--cuda-sanitize needs processes of its own: leave out --cuda-isolate=none")
        return "auto"
    return str(mode)


def _timeout_s(config: pytest.Config) -> float:
    option = config.getoption("--cuda-timeout")
    text = config.getini("cuda_timeout")
    try:
        timeout_s = float(option if option is not None else text or DEFAULT_TIMEOUT_S)
    except ValueError:
        raise pytest.UsageError(f"cuda_timeout = {text!r}: it must be a number of seconds") from None
    if not 0 <= timeout_s < float("inf"):
        raise pytest.UsageError(f"--cuda-timeout {timeout_s}: it must be a number of seconds, 0 for no limit")
    return timeout_s


def _is_child(config: pytest.Config) -> bool:
    return config.pluginmanager.hasplugin("cudadiag-isolation-child")


def _controller(config: pytest.Config) -> Controller | None:
    return config.stash.get(_CONTROLLER, None)


def pytest_report_header(config: pytest.Config) -> str | None:
    controller = _controller(config)
    return controller.header() if controller is not None else None


def pytest_collection(session: pytest.Session) -> bool | None:
    """Not tryfirst: plugins that only want to hear of it (the terminal, pytest-xdist's workers) come before."""
    controller = _controller(session.config)
    return controller.collect(session) if controller is not None else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: RemoteItem, nextitem: pytest.Item | None) -> bool | None:
    controller = _controller(item.config)
    if controller is None:
        return None
    controller.run(item, nextitem)
    return True


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item) -> bool | None:
    """pytest-timeout does its work in the child; here its alarm would interrupt the wait for it."""
    return True if _controller(item.config) is not None else None


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    return True if _controller(item.config) is not None else None


def _load(name: str) -> ModuleType:
    """A module of ours, where the tests may have a package `harness` of their own: theirs keeps the name.

    Ours is found beside this package, not on sys.path, and works on without its entry in sys.modules.
    """
    ours = Path(__file__).parents[2] / "harness" / "__init__.py"
    known = sys.modules.get("harness")
    if known is not None and known.__file__ is not None and Path(known.__file__).resolve() == ours.resolve():
        return importlib.import_module(name)
    theirs = _take_out("harness")
    try:
        sys.modules.update(_OURS)
        if "harness" not in sys.modules:
            spec = importlib.util.spec_from_file_location(
                "harness", ours, submodule_search_locations=[str(ours.parent)]
            )
            assert spec is not None
            assert spec.loader is not None
            sys.modules["harness"] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        return importlib.import_module(name)
    finally:
        _OURS.update(_take_out("harness"))
        sys.modules.update(theirs)


_OURS: dict[str, Any] = {}


def _take_out(package: str) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == package or name.startswith(package + ".")]
    return {name: sys.modules.pop(name) for name in names}
