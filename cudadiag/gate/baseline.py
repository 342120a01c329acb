"""The baseline: the crashes that are known, in a YAML file under version control. Read and checked here, edited in
`edit`."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from cudadiag.case.axes import format_value
from cudadiag.case.expr import Expression, ExpressionError, parse
from cudadiag.errors import UsageError
from cudadiag.gate.rates import Rate
from cudadiag.model import Scalar
from cudadiag.signature import VERSION as SIGNATURE_VERSION
from cudadiag.signature import Judgements, read_judgements

VERSION = 1


def _rate(value: Any) -> Rate:
    """A share above 0 up to 1, or `fails/runs` as counted."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return Rate(share=float(value))
    match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", value) if isinstance(value, str) else None
    if match and 0 < int(match[1]) <= int(match[2]):
        return Rate(fails=int(match[1]), runs=int(match[2]))
    raise ValueError(f"{value!r} is no rate: a share such as 0.3, or what was counted, such as 3/10")


def _expression(value: Any) -> Expression:
    try:
        return parse(str(value)) if isinstance(value, str | int | bool) else _not_a_rule(value)
    except ExpressionError as error:
        raise ValueError(f"the rule {value!r}: {error.message}") from None


def _not_a_rule(value: Any) -> Expression:
    raise ValueError(f"{value!r} is no rule: a condition such as 'prefix > 1024'")


def _signatures(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    for name in names if isinstance(names, list) else ():
        if not str(name).startswith(f"v{SIGNATURE_VERSION}/"):
            raise ValueError(f"{name!r} is no signature of version {SIGNATURE_VERSION}: make it anew with --update")
    return names


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class EntryModel(_Model):
    """One known crash."""

    case: str = Field(min_length=1, description="the case's name, or group/name where two have one name")
    rule: Annotated[Expression, BeforeValidator(_expression)] | None = Field(
        default=None, description="condition on the shapes that fail: a rule as `bisect` prints it"
    )
    shapes: list[dict[str, int | float | bool | str]] | None = Field(
        default=None, min_length=1, description="or the shapes; a parameter left out may have any value"
    )
    signature: Annotated[list[str], BeforeValidator(_signatures)] = Field(
        min_length=1, description="what it looks like, fine or coarse; several where witnesses tell it differently"
    )
    reason: str = Field(min_length=1, description="why it is tolerated")
    owner: str = Field(min_length=1, description="who looks after it")
    issue: str = Field(min_length=1, description="address of the issue")
    expires: datetime.date = Field(description="last day on which it is tolerated, YYYY-MM-DD")
    rate: Annotated[Rate, BeforeValidator(_rate)] | None = Field(
        default=None, description="how often it fails in a fresh process: 0.3, or counted, 3/10"
    )
    device: Literal["cuda", "emulator", "none"] | None = Field(
        default=None, description="the kind of device it is known on; without it, on all"
    )

    @model_validator(mode="after")
    def _one_of(self) -> EntryModel:
        if (self.rule is None) == (self.shapes is None):
            raise ValueError("needs exactly one of `rule` and `shapes`")
        return self


def _nothing(value: Any) -> Any:
    """`known:` with nothing below it."""
    return [] if value is None else value


class BaselineModel(_Model):
    """The file."""

    version: Literal[1] = Field(description="of this format")
    known: Annotated[list[EntryModel], BeforeValidator(_nothing)] = Field(
        default_factory=list, description="the known crashes"
    )
    merge: list[Any] = Field(default_factory=list, description="signatures that are one bug")
    split: list[Any] = Field(default_factory=list, description="coarse signatures that stand for several bugs")


@dataclass(frozen=True)
class Entry:
    """One known crash. `place` is its position among the file's entries, from 0; `line` where it stands."""

    place: int
    line: int
    case: str
    rule: Expression | None
    shapes: tuple[Mapping[str, Scalar], ...]
    signatures: tuple[str, ...]
    reason: str
    owner: str
    issue: str
    expires: datetime.date
    rate: Rate | None
    device: str | None

    @property
    def where(self) -> str:
        """The rule or the shapes, in words."""
        if self.rule is not None:
            return self.rule.text
        return " or ".join(
            " ".join(f"{name}={format_value(value)}" for name, value in shape.items()) or "any shape"
            for shape in self.shapes
        )

    @property
    def key(self) -> str:
        """What stays the same when entries around it come and go: its shard is chosen by it."""
        return f"{self.case}\0{self.where}"

    @property
    def measured(self) -> Rate:
        return self.rate or Rate()


@dataclass(frozen=True)
class Baseline:
    """All known crashes, and what people decided about signatures. `path` None: there is no file."""

    path: Path | None = None
    entries: tuple[Entry, ...] = ()
    judgements: Judgements = field(default_factory=Judgements)

    def of(self, case: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.case == case)


def round_trip() -> YAML:
    """The reader and writer that keeps comments, order and quotes."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def read_baseline(path: Path) -> Baseline:
    """The baseline of a file. Raises UsageError with `file:line: what is wrong`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read the baseline {path}: {problem}") from problem
    return parse_baseline(text, path)


def parse_baseline(text: str, path: Path) -> Baseline:
    """The baseline in a text. Raises UsageError with `path:line: what is wrong`."""
    document = load_document(text, path)
    if document is None:
        return Baseline(path)
    plain = _plain(document)
    try:
        model = BaselineModel.model_validate(plain)
    except ValidationError as error:
        lines = [f"{path}:{_line(document, e['loc'])}: {_words(e)}" for e in error.errors(include_url=False)]
        raise UsageError("\n".join(lines), hint="docs/reference/gate-baseline.md has every key") from None
    entries = tuple(_entry(i, entry, document) for i, entry in enumerate(model.known))
    return Baseline(path, entries, _judgements(plain, path))


def load_document(text: str, path: Path) -> Any:
    """The document as ruamel keeps it. Raises UsageError where it is no YAML mapping; None for an empty file."""
    try:
        document = round_trip().load(io.StringIO(text))
    except MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{line}: {problem.problem or 'not YAML'}") from problem
    except (YAMLError, ValueError, RecursionError) as problem:
        raise UsageError(f"{path}: not YAML: {problem}") from problem
    if document is not None and not isinstance(document, dict):
        raise UsageError(f"{path}:1: a baseline is a mapping with the keys version and known")
    return document


def _judgements(plain: Mapping[str, Any], path: Path) -> Judgements:
    given = {key: plain[key] for key in ("merge", "split") if plain.get(key)}
    if not given:
        return Judgements()
    out = io.StringIO()
    YAML(typ="safe").dump(given, out)
    return read_judgements(out.getvalue(), str(path))


def _entry(place: int, model: EntryModel, document: Any) -> Entry:
    return Entry(
        place=place,
        line=_line(document, ("known", place)),
        case=model.case,
        rule=model.rule,
        shapes=tuple(model.shapes or ()),
        signatures=tuple(model.signature),
        reason=" ".join(model.reason.split()),
        owner=model.owner,
        issue=model.issue,
        expires=model.expires,
        rate=model.rate,
        device=model.device,
    )


def _plain(value: Any) -> Any:
    """ruamel's values as Python's own."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _line(document: Any, loc: tuple[Any, ...]) -> int:
    """The line of the deepest place that exists, from 1."""
    line = 0
    node: Any = document
    for part in loc:
        try:
            places: Any = node.lc
            line = places.key(part)[0] if isinstance(node, dict) else places.item(part)[0]
            node = node[part]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return int(line) + 1


def _words(error: Any) -> str:
    loc = error["loc"]
    keys = ".".join(str(part) for part in _named(loc))
    match error["type"]:
        case "missing":
            return f"{keys}: needed, and not there"
        case "extra_forbidden":
            return f"{keys}: unknown key"
        case "value_error":
            return f"{keys}: {error['ctx']['error']}"
    return f"{keys}: {error['msg']}, not {error['input']!r}"


def _named(loc: tuple[Any, ...]) -> Iterator[str]:
    """Only what stands in the file: pydantic names the branches of a union too."""
    for part in loc:
        if isinstance(part, int) or re.fullmatch(r"[a-z_]+", part):
            yield str(part + 1 if isinstance(part, int) else part)
