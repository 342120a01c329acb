"""All conformance cases, by name."""

from __future__ import annotations

from conf_case import Case
from conf_convert import all_convert
from conf_cuda import all_cuda
from conf_float import all_float
from conf_half import all_half
from conf_integer import all_integer
from conf_warp import all_warp


def table() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for case in [*all_integer(), *all_float(), *all_convert(), *all_half(), *all_warp(), *all_cuda()]:
        if case.name in cases:
            raise ValueError(f"two conformance cases are named {case.name}")
        cases[case.name] = case
    return cases
