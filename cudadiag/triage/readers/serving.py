"""A server's own numbers that tell before it dies that something is wrong, and marks of a new life of a process."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

_ACCEPTED = re.compile(r"(?i)\b(?P<what>(?:avg_|mean_|num_)?accept\w*)[=: ]{1,3}(?P<value>\[[\d,. ]*\]|\d+(?:\.\d+)?)")
_START = re.compile(
    r"(?i)started server process|initializing an? (?:v1 )?(?:llm|async\w*) engine|server_args=|launching server|"
    r"starting (?:the )?(?:server|service|engine|run|bench\w*)\b|^=+ ?(?:config|run|start)\w*\b"
    r"|systemd\[\d+\]: Start(?:ed|ing)|main: loading model"
)


class Serving:
    """The reader."""

    name = "serving"

    def read(self, spot: Spot) -> Iterator[Sign]:
        accepted = [
            m for m in _ACCEPTED.finditer(spot.text) if "draft" in spot.text.lower() or "spec" in spot.text.lower()
        ]
        numbers = [_numbers(m["value"]) for m in accepted]
        if accepted and any(n and not any(n) for n in numbers):
            yield Sign(
                Role.CONTEXT, spot.log_line, spot.quote, cause="zero-accepted",
                words="no drafted token was accepted: the results were wrong before anything crashed",
            )  # fmt: skip
        elif accepted and any(any(n) for n in numbers):
            yield Sign(
                Role.CONTEXT,
                spot.log_line,
                spot.quote,
                cause="worked",
                words="drafted tokens were accepted",
            )
        elif _START.search(spot.text):
            yield Sign(
                Role.CONTEXT, spot.log_line, spot.text.strip()[:200], cause="start", words="a process was started"
            )


def _numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"\d+(?:\.\d+)?", text)]
