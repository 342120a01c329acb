"""Reports cut off at every byte: never an exception, never clean, never an invented record."""

from __future__ import annotations

import pytest
import recordings

from cudadiag.evidence.sanitizer import Health, SanitizerRecord, sanitizer_report

XML = [
    ("race", "racecheck"),
    ("double_free", "memcheck"),
    ("leak", "memcheck"),
    ("oom", "memcheck"),
    ("use_after_free", "memcheck"),
]
TEXT = [
    ("oob_far", "memtext"),
    ("misaligned", "memtext"),
    ("stack_overflow", "memtext"),
    ("race", "racecheck"),
    ("grid_y", "memcheck"),
]


def places(records: tuple[SanitizerRecord, ...]) -> set[tuple[object, ...]]:
    return {(r.tool_kind, r.kernel, r.line, r.number, r.api) for r in records}


@pytest.mark.parametrize(("fault", "observer"), XML)
def test_xml_cut_at_every_byte_gives_what_was_there_and_is_truncated(fault: str, observer: str) -> None:
    data = recordings.files()[f"runs/{fault}/{observer}/report.xml"]
    whole = sanitizer_report(data, None)
    end = data.index(b"</ComputeSanitizerOutput>") + len(b"</ComputeSanitizerOutput>")
    counted = 0
    for cut in range(len(data)):
        report = sanitizer_report(data[:cut], None)
        assert report.health is (Health.TRUNCATED if cut < end else Health.NO_SUMMARY), cut
        assert len(report.records) <= len(whole.records)
        finished = data.count(b"</record>", 0, cut)
        assert sum(record.count for record in report.records) >= min(finished, 1)
        assert places(report.records[: max(0, len(report.records) - 1)]) <= places(whole.records), cut
        assert len(report.records) >= counted - 1
        counted = len(report.records)


@pytest.mark.parametrize(("fault", "observer"), TEXT)
def test_text_cut_at_every_byte_gives_what_was_there_and_no_summary(fault: str, observer: str) -> None:
    data = recordings.run_files(fault, observer)["sanitizer_log"]
    whole = sanitizer_report(None, data)
    summary = min(at for word in (b"ERROR SUMMARY", b"RACECHECK SUMMARY") if (at := data.find(word)) >= 0)
    for cut in range(len(data)):
        report = sanitizer_report(None, data[:cut])
        assert report.health in (Health.NO_SUMMARY, Health.NO_REPORT) or cut > summary, cut
        assert len(report.records) <= len(whole.records) + 1  # the last one is not known whole, so not folded
        assert places(report.records[: max(0, len(report.records) - 1)]) <= places(whole.records), cut
