"""Ships the cases in a wheel as cudadiag/cases. An editable install reads ../cases: a copy there would age."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CasesHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"][os.path.join(self.root, "cases")] = "cudadiag/cases"
