"""Memory that is never freed, in words: how much, how often, whose."""

from __future__ import annotations

import pytest

from cudadiag.evidence import Expectations, judge, read
from cudadiag.evidence.sanitizer import sanitizer_report
from cudadiag.model import Verdict
from harness.records import ProbeFacts

PLACE = """=========     Saved host backtrace up to driver entry point at allocation time
=========         Host Frame: cuMemAlloc_v2 [0x10] in libcuda.so.1
=========         Host Frame: cudaMalloc [0x20] in app
=========         Host Frame: {caller} [0x30] in app
=========         Host Frame: main [0x40] in app
=========
"""


def leaked(sizes: list[int], caller: str = "custom_pool_grow", printed: int | None = None) -> Verdict:
    """What is said of a program that leaks so; only the first `printed` records are in the report."""
    shown = sizes if printed is None else sizes[:printed]
    records = [
        f"========= Leaked {size:,} bytes at 0x7f{at:04x}000\n{PLACE.format(caller=caller)}"
        for at, size in enumerate(shown)
    ]
    left = len(sizes) - len(shown)
    more = f"========= ERROR SUMMARY: {left} errors were not printed. Use --print-limit option\n" if left else ""
    summary = f"========= LEAK SUMMARY: {sum(sizes)} bytes leaked in {len(sizes)} allocations\n"
    end = f"========= ERROR SUMMARY: {len(sizes)} errors\n{more}"
    text = f"========= COMPUTE-SANITIZER\n{''.join(records)}{summary}{end}".encode()
    report = sanitizer_report(None, text)
    assert sum(record.count for record in report.records) == len(shown)
    facts = ProbeFacts(exit_code=0, inner_exit={"exit_code": 0})
    verdict = judge(
        facts,
        read({"stdout": b"", "stderr": b"", "sanitizer_log": text}),
        Expectations(observer="memcheck", leaks=True),
    )
    assert verdict.fault is not None
    return verdict


def detail(verdict: Verdict) -> str:
    assert verdict.fault is not None
    return verdict.fault.detail or ""


def test_leaks_of_one_call_are_counted_each() -> None:
    found = leaked([4096] * 5)
    assert found.reason == "5 allocations of 20480 bytes in all never freed"
    assert detail(found) == "Leaked 4,096 bytes at 0x7f0000000, 5 times, allocated in custom_pool_grow"


def test_sizes_and_numbers_add_up() -> None:
    found = leaked([4096] * 5 + [100])
    assert found.reason == "6 allocations of 20580 bytes in all never freed"
    assert detail(found).count(";") == 1


@pytest.mark.parametrize(
    ("caller", "name"),
    [("cutlass_init", "cutlass_init"), ("_ZN3foo4growEm", "foo::grow"), ("cudaMallocAsync", "main")],
)
def test_who_allocated_is_the_innermost_function_of_the_programs_own(caller: str, name: str) -> None:
    assert detail(leaked([64], caller)).endswith(f"allocated in {name}")


def test_what_was_not_printed_makes_it_a_lower_bound() -> None:
    assert leaked([64] * 9, printed=4).reason == "at least 4 allocations of 256 bytes in all never freed"
