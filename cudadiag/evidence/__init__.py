"""Evidence: pure readers (bytes to facts) and the table that maps the facts of a probe to its outcome.

Nothing here runs anything, opens a file or knows the time.
"""

from cudadiag.evidence.codes import CudaCode, Xid, lookup
from cudadiag.evidence.driver_log import DriverLogEntry, driver_log
from cudadiag.evidence.error_lines import ErrorLine, error_lines, first_error, recognise
from cudadiag.evidence.expectations import Expectations
from cudadiag.evidence.judge import TABLE, Rule, decided, judge
from cudadiag.evidence.reading import Reading, from_json, read, to_json

__all__ = [
    "TABLE",
    "CudaCode",
    "DriverLogEntry",
    "ErrorLine",
    "Expectations",
    "Reading",
    "Rule",
    "Xid",
    "decided",
    "driver_log",
    "error_lines",
    "first_error",
    "from_json",
    "judge",
    "lookup",
    "read",
    "recognise",
    "to_json",
]
