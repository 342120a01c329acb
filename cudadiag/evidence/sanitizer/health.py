"""Did the tool do its work? Read from its own lines; everything but a proof that it did means "not checked"."""

from __future__ import annotations

import re

from cudadiag.evidence.sanitizer.records import Health
from cudadiag.evidence.sanitizer.text import TextReport
from cudadiag.evidence.sanitizer.xml import XmlReport

_SAID = tuple(
    (re.compile(pattern, re.IGNORECASE), health)
    for pattern, health in (
        (r"internal sanitizer error|errors might go undetected|results might be incorrect", Health.INTERNAL_ERROR),
        (r"failure to track a kernel launch|records might be incomplete|errors were skipped", Health.INTERNAL_ERROR),
        (r"couldn't find exit code|could not read report|failed to (?:create|write)\b.*report", Health.INTERNAL_ERROR),
        (r"terminated before first instrumented kernel launch|filter ill-formed", Health.FILTERED_OUT),
        (r"terminated before first instrumented api call|doesn't exist or is not a valid", Health.NEVER_REACHED_CUDA),
        (r"no attachable process|could not connect to target|failed to wait for target", Health.NO_CONNECTION),
        (r"unable to (?:find .*injection library|initialize its connection)", Health.NO_CONNECTION),
        (r"device (?:is )?not supported|not supported on (?:this|the) (?:device|gpu)", Health.DEVICE_NOT_SUPPORTED),
    )
)


def health_of(text: TextReport | None, xml: XmlReport | None) -> tuple[Health, tuple[str, ...]]:
    """The health of a run, worst first, and the lines it rests on.

    `ok` needs the summary line of the text and, where an XML file is there, its proper end.
    """
    if (text is None or not text.is_report) and xml is None:
        return Health.NO_REPORT, ()
    for health, line in _complaints(text):
        return health, (line,)
    if xml is not None and not xml.complete:
        return Health.TRUNCATED, (xml.problem or "",)
    if text is None or text.errors is None:
        return Health.NO_SUMMARY, ()
    return Health.OK, ()


def _complaints(text: TextReport | None) -> list[tuple[Health, str]]:
    notes = text.notes if text is not None else []
    found = [(health, note[:300]) for note in notes for pattern, health in _SAID if pattern.search(note)]
    order = list(Health)
    return sorted(found, key=lambda pair: (pair[0] is not Health.NO_CONNECTION, order.index(pair[0])))
