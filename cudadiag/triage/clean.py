"""A raw line of a log without what other programs put around it: colours, time stamps, ranks, pods, loggers.

What is taken off is kept: it says which process wrote the line, and when. Pure and total.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cudadiag.triage.sign import Moment

MAX_PREFIXES = 10
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CARETS = re.compile(r"\^\[\[[0-9;]*m")  # colours as `cat -v` or some web pages show them
_LONG_RUN = re.compile(r"\S{600,}")
"""No word of a log is that long: encoded data, or a line without blanks. The readers' time grows with its square."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_ISO = r"(?P<iso>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = r"(?P<level>DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|[DIWEF])"
_QUIET = frozenset({"DEBUG", "INFO", "WARN", "WARNING", "D", "I", "W"})
_RANKS = re.compile(r"\b(?:(?:TP|DP|PP|EP|CP|ATTN_TP)\d+)(?:[ _](?:TP|DP|PP|EP|CP)\d+)*\b")


@dataclass(frozen=True)
class Clean:
    """A line: its own words, who wrote them (None: nothing says so), and when. `quiet`: its logger calls it a warning
    or less."""

    text: str
    process: str | None = None
    moment: Moment | None = None
    quiet: bool = False


@dataclass
class _Found:
    process: list[str]
    moment: Moment | None = None
    level: str | None = None


def without_colours(raw: str) -> str:
    """A line without colours and control characters, everything else kept."""
    text = _ANSI.sub("", raw) if "\x1b" in raw else raw
    return _CONTROL.sub(" ", _CARETS.sub("", text)).rstrip()


def _shortened(run: re.Match[str]) -> str:
    return f"{run[0][:250]}...{run[0][-250:]}"


def clean(raw: str) -> Clean:
    """The words of a line, and what stood before them."""
    return _clean(raw)


@functools.lru_cache(maxsize=4096)
def _clean(raw: str) -> Clean:
    found = _Found([])
    text = _LONG_RUN.sub(_shortened, _from_json(without_colours(raw), found))
    for _ in range(MAX_PREFIXES):
        shorter = _strip_one(text, found)
        if shorter is None:
            break
        text = shorter
    return Clean(text, " ".join(found.process) or None, found.moment, found.level in _QUIET)


def _from_json(text: str, found: _Found) -> str:
    """A line of a structured log: its message, with its time."""
    if not text.startswith("{") or not text.endswith("}") or len(text) > 100_000:
        return text
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(entry, dict):
        return text
    message = next((entry[key] for key in ("log", "message", "msg", "text", "MESSAGE") if key in entry), None)
    if not isinstance(message, str):
        return text
    stamp = next((entry[key] for key in ("time", "timestamp", "ts", "@timestamp") if key in entry), None)
    if isinstance(stamp, str):
        found.moment = _iso(stamp[:26].rstrip("Z"))
    error = next((entry[key] for key in ("error", "err", "exception", "stack_trace") if key in entry), None)
    return _CONTROL.sub(" ", message + (f" {error}" if isinstance(error, str) else "")).strip()


def _strip_one(text: str, found: _Found) -> str | None:
    for pattern, take in _PREFIXES:
        match = pattern.match(text)
        if match and match.end() > 0:
            take(match, found)
            found.level = match.groupdict().get("level") or found.level
            return text[match.end() :]
    return None


def _time(match: re.Match[str], found: _Found) -> None:
    groups = match.groupdict()
    if groups.get("iso"):
        found.moment = _iso(groups["iso"])
    elif groups.get("uptime"):
        found.moment = Moment("uptime", float(groups["uptime"]))
    elif groups.get("clock"):
        found.moment = _clock(groups["clock"])
    elif groups.get("day"):
        found.moment = _day(groups["day"])
    _who(match, found)


def _who(match: re.Match[str], found: _Found) -> None:
    groups = match.groupdict()
    ranks = _RANKS.search(groups.get("inside") or "")
    if ranks:
        found.process.append(ranks[0])
    for key, word in (("who", ""), ("rank", "rank "), ("pid", "pid "), ("task", "task ")):
        value = groups.get(key)
        if value and word + value not in found.process:
            found.process.append(word + value)


def _nothing(match: re.Match[str], found: _Found) -> None:
    """A prefix that tells nothing of interest."""


def _iso(stamp: str) -> Moment | None:
    text = stamp.replace("/", "-").replace(",", ".").replace("T", " ")
    whole, _, fraction = text.partition(".")
    try:
        seconds = (datetime.fromisoformat(whole) - datetime(1970, 1, 1)).total_seconds()
    except (ValueError, TypeError):
        return None
    return Moment("date", seconds + (float("0." + fraction) if fraction.isdigit() else 0.0))


def _clock(stamp: str) -> Moment | None:
    hours, minutes, seconds = stamp.replace(",", ".").split(":")
    return Moment("clock", int(hours) * 3600 + int(minutes) * 60 + float(seconds))


_MONTHS = {
    m: i
    for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1)
}


def _day(stamp: str) -> Moment | None:
    """A stamp without a year: `05-12 19:01:18`, `1120 10:59:55.89`, `Jan 09 18:55:45`, `Wed Jun 24 15:44:20 2026`."""
    match = re.search(r"(?:(\d{1,2})-?(\d\d)|([A-Z][a-z]{2})\s+(\d{1,2})) (\d\d):(\d\d):(\d\d(?:\.\d+)?)", stamp)
    if match is None:
        return None
    month = int(match[1]) if match[1] else _MONTHS.get(match[3], 0)
    day = int(match[2] or match[4])
    return Moment("day", ((month * 31 + day) * 24 + int(match[5])) * 3600 + int(match[6]) * 60 + float(match[7]))


_PREFIXES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], _Found], None]], ...] = tuple(
    (re.compile(pattern), take)
    for pattern, take in (
        (r"(?:[│|>]\s)+\s*(?=\S)", _nothing),
        (rf"{_ISO}{_ZONE} (?:stdout|stderr) [FP] ", _time),
        (rf"\[?{_ISO}{_ZONE}(?P<inside>(?: (?:TP|DP|PP|EP|CP|ATTN)[\w ]*?)?)\]\s*", _time),
        (rf"{_ISO}{_ZONE}(?::\s+(?:(?P<level>[DIWEF])\s+)?(?:\d+\s+)?|\s+-\s+|\s+)", _time),
        (r"\[\s*(?P<uptime>\d{1,9}\.\d{3,9})\]\s", _time),
        (r"\[(?P<day>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\]\s", _time),
        (
            r"(?P<day>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ [\w./@-]+(?:\[(?P<pid>\d+)\])?:\s"
            r"(?:\[\s*\d+\.\d+\]\s)?",
            _time,
        ),
        (r"\[(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d+)?)\](?!\[)\s*", _time),
        (r"(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d+)?)\s+(?=\S)", _time),
        (rf"{_LEVEL} (?P<day>\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? (?:\[[^\]\s]+:\d+\]|[\w./]+:\d+\])\s?", _time),
        (r"\[?(?P<level>[DIWEF])(?P<day>\d{3,4} \d\d:\d\d:\d\d\.\d+)\s+(?:\d+\s+)?(?=\S+:\d+\])", _time),
        (r"\[?(?P<level>[DIWEF]) ?(?P<day>\d{3,4} \d\d:\d\d:\d\d)\.\d+\s", _time),
        (rf"{_LEVEL}:(?:[\w.]+:|\s+)\s*(?=\S)", _nothing),
        (rf"\[{_LEVEL}\]\s*", _nothing),
        (rf"[\w.$-]{{1,60}} - {_LEVEL} - ", _nothing),
        (rf"{_LEVEL} +(?=[\w.]+: )", _nothing),
        (r"\[\d{1,8}\] (?=\[)", _nothing),
        (r"\((?P<who>[A-Z]\w*(?: \w+)?)(?:[_ ]\w+=\S+)*?,? ?(?:rank=(?P<rank>\d+) )?pid=(?P<pid>\d+)[^)]*\)\s?", _who),
        (r"\((?P<who>\w+), ip=[^)]*\)\s?", _who),
        (r"\[(?:rank|Rank|RANK)[ :]?(?P<rank>\d+)\]:?\s?", _who),
        (r"\[default(?P<rank>\d+)\]:?\s?", _who),
        (r"\[\d+,(?P<rank>\d+)\]<std(?:out|err)>:\s?", _who),
        (r"(?:[Rr]ank|RANK)[ _]?(?P<rank>\d+)\s?[:|]\s*(?=\S)", _who),
        (r"(?P<task>\d{1,5}): (?=\S)", _who),
        (r"\[(?P<who>(?:pod|container|job)/[^\]\s]+)\]\s", _who),
        (r"(?P<who>[A-Za-z][\w.-]{1,60}-?\d*)\s+\|\s", _who),
    )
)
