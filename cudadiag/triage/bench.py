"""What a benchmark or a server's own numbers say: which settings gave nothing, which still worked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cudadiag.triage.clean import clean
from cudadiag.triage.table import Table

MAX_NAMED = 12
_SPEED = re.compile(r"(?i)(?P<value>\d+(?:\.\d+)?) ?(?:tok(?:en)?s?/s|tokens per second)")
_SETTING = re.compile(
    r"\b(?P<name>bs|batch_size|budget|topk|num_steps|tp|dp|depth|block_size|draft\w*tokens?)=(?P<value>[\w.]+)"
)
_CONFIG = re.compile(r"\b(?P<config>(?:[a-z]+\d+-)+[a-z]*\d*\w*|tp\d+-\w+|b\d+)\b")
_PERIODIC = re.compile(r"(?i)throughput|running|queue|#|kv cache|gen throughput")
_BEGUN = re.compile(r"(?i)^\W*(?:running|testing|starting|benchmarking|config|shape|case|test|trial|try(?:ing)?)\b")
_ANY_SETTING = re.compile(r"\b(?P<name>[A-Za-z_]\w{0,24})=(?P<value>-?[\w.]{1,40})")
_METRIC = re.compile(r"(?i)metrics:|verify completed|accept")


@dataclass
class BenchFacts:
    """`affected`: settings whose results are nothing; `worked`: those with results. `settings`: of the last line of
    metrics, or of what was begun last, before the fault."""

    affected: list[str] = field(default_factory=list)
    worked: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


def bench_facts(data: bytes, found: Iterable[Table], until_line: int | None = None) -> BenchFacts:
    """Reads the throughput lines and tables of a text. `until_line`: where the fault stands, for the settings."""
    facts = BenchFacts()
    for number, raw in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if not ("tok" in raw or "=" in raw):
            continue
        text = clean(raw).text
        _speed(text, facts)
        if _BEGUN.search(text) and (until_line is None or number <= until_line):
            begun = {m["name"]: m["value"] for m in _ANY_SETTING.finditer(text)}
            facts.settings = begun or facts.settings
        if _METRIC.search(text) and (until_line is None or number <= until_line):
            facts.settings.update({m["name"]: m["value"] for m in _SETTING.finditer(text)})
    for table in found:
        _table(table, facts)
    facts.worked = [name for name in facts.worked if name not in facts.affected]
    return facts


def _speed(text: str, facts: BenchFacts) -> None:
    match = _SPEED.search(text)
    if match is None or _PERIODIC.search(text):
        return
    name = _label(text, match.start())
    if name:
        _add(facts.affected if float(match["value"]) == 0 else facts.worked, name)


def _label(text: str, end: int) -> str | None:
    config = _CONFIG.search(text[:end])
    settings = [f"{m['name']}={m['value']}" for m in _SETTING.finditer(text[:end])]
    if config:
        return config["config"]
    if settings:
        return " ".join(settings)
    head = text[:end].strip(" :|-=\t")
    return head[:60] if 0 < len(head) <= 60 else None


def _table(table: Table, facts: BenchFacts) -> None:
    speed = table.speed_column()
    if speed is None:
        return
    for row in table.rows:
        value = row.cells.get(speed)
        if isinstance(value, int | float):
            settings = [f"{k}={v}" for k, v in row.cells.items() if k != speed and not isinstance(v, float)]
            _add(facts.affected if value == 0 else facts.worked, " ".join(settings[:4]) or f"line {row.log_line}")


def _add(names: list[str], name: str) -> None:
    if name not in names and len(names) < MAX_NAMED:
        names.append(name)
