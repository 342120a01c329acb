"""What makes other plugins treat a child as a worker: pytest-xdist's own words, as xdist's plugins know them."""

from __future__ import annotations

import json
import socket
import sys
import uuid
from types import SimpleNamespace
from typing import Any

import pytest

_COVERAGE = "_cov"  # pytest-cov's object: outside xdist it has nothing to say to a worker


def workerinput(config: pytest.Config) -> dict[str, Any]:
    """Within one of pytest-xdist's workers what that worker got; else as much as a lone worker would get."""
    given = getattr(config, "workerinput", None)
    return {key: value for key, value in (_made(config) if given is None else given).items() if _is_json(value)}


def _made(config: pytest.Config) -> dict[str, Any]:
    words: dict[str, Any] = {
        "workerid": "master", "workercount": 1, "testrunuid": uuid.uuid4().hex, "mainargv": list(sys.argv),
        # for pytest-cov: the child runs where its parent runs, so its data files are in place
        "cov_master_host": socket.gethostname(), "cov_master_topdir": str(config.invocation_params.dir),
        "cov_master_rsync_roots": [],
    }  # fmt: skip
    caller = getattr(config.hook, "pytest_configure_node", None)
    node = SimpleNamespace(workerinput=words, config=config, gateway=SimpleNamespace(id="master"))
    for found in caller.get_hookimpls() if caller is not None else ():
        if found.plugin_name != _COVERAGE:
            _ask(config, found, node)
    return words


def _ask(config: pytest.Config, found: Any, node: SimpleNamespace) -> None:
    try:
        found.function(node)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises that wants more of a node than there is
        text = f"cuda isolation: plugin {found.plugin_name} could not prepare a child: {type(error).__name__}: {error}"
        config.issue_config_time_warning(pytest.PytestWarning(text), 2)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
