"""Readers of compute-sanitizer's reports: XML and text of all four tools, pure and total."""

from cudadiag.evidence.sanitizer.records import Frame, Health, SanitizerRecord, SanitizerReport
from cudadiag.evidence.sanitizer.report import folded, sanitizer_report

__all__ = ["Frame", "Health", "SanitizerRecord", "SanitizerReport", "folded", "sanitizer_report"]
