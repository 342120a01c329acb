"""Cases from files and from the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cudadiag.case.axes import check_name, parse_option
from cudadiag.case.case import Case, CaseLimits, refuse_twice
from cudadiag.case.expr import ExpressionError, parse
from cudadiag.case.targets import CommandTarget, Formula
from cudadiag.case.template import literal_template, parse_template
from cudadiag.errors import UsageError
from cudadiag.model import Axis


def load(path: str | Path) -> Case:
    """The case of a file. Raises CaseError (exit 2): `file:line:column: what is wrong, what would be right`."""
    from cudadiag.case.yamltext import read_bytes

    return load_text(read_bytes(Path(path)), Path(path))


def load_text(content: bytes, path: Path) -> Case:
    """The case in the bytes of a file that stands, or would stand, at `path`. Raises CaseError."""
    from cudadiag.case.border import check  # pydantic and YAML: 0.15 s that a case without a file need not pay
    from cudadiag.case.convert import Conversion
    from cudadiag.case.yamltext import parse_document

    document = parse_document(content, str(path))
    return Conversion(document, check(document), path).case()


def from_command(
    params: Sequence[str | Axis],
    argv: Sequence[str],
    *,
    name: str | None = None,
    cwd: str | Path | None = None,
    where: Sequence[str] = (),
    derive: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    success: str | None = None,
    timeout_s: float | None = None,
    observer: str = "blocking",
) -> Case:
    """A case without a file: `-P` options and the words of a command, in which {expressions} are replaced.

    Without any `-P` the words are taken literally, so that a command with braces of its own needs no doubling.
    Raises UsageError: a wrong option, an unknown name in braces, an empty command.
    """
    axes = tuple(parse_option(param) if isinstance(param, str) else param for param in params)
    refuse_twice(axes)
    if not argv:
        raise UsageError("no command: write it after --, such as -- ./bench --q {q_len}")
    named = _derived(derive or {}, [axis.name for axis in axes])
    known = dict.fromkeys([*(axis.name for axis in axes), *named])
    folder = Path(cwd) if cwd is not None else Path.cwd()
    return Case(
        name=name or Path(argv[0]).name or "command",
        title=" ".join(argv),
        path=None,
        folder=folder,
        target=CommandTarget(_words(argv, known, literal=not axes), folder),
        axes=axes,
        named=named,
        derive=tuple(named),
        where=_conditions(where, known),
        limits=CaseLimits() if timeout_s is None else CaseLimits(timeout_s=timeout_s),
        success=success,
        env={key: Formula(literal_template(text), ("env", key)) for key, text in (env or {}).items()},
        observer=observer,
    )


@contextmanager
def _told_of(option: str) -> Iterator[None]:
    """What is wrong with an expression is told as a wrong use of this option."""
    try:
        yield
    except ExpressionError as error:
        raise UsageError(f"{option}: {error.pointed()}") from None


def _words(argv: Sequence[str], known: Mapping[str, None], literal: bool) -> tuple[Formula, ...]:
    with _told_of("the command"):
        words = [literal_template(word) if literal else parse_template(word) for word in argv]
        for word in words:
            word.check_names(known)
    return tuple(Formula(word, ()) for word in words)


def _conditions(where: Sequence[str], known: Mapping[str, None]) -> tuple[Formula, ...]:
    with _told_of("--where"):
        conditions = [parse(text) for text in where]
        for condition in conditions:
            condition.check_names(known)
    return tuple(Formula(condition, ("--where",)) for condition in conditions)


def _derived(given: Mapping[str, str], names: Sequence[str]) -> dict[str, Formula]:
    named: dict[str, Formula] = {}
    for name, text in given.items():
        problem = check_name(name)
        if problem is None and name in names:
            problem = f"{name} is a parameter too"
        if problem is not None:
            raise UsageError(f"--derive {name}: {problem}")
        with _told_of(f"--derive {name}"):
            expression = parse(text)
            expression.check_names(dict.fromkeys([*names, *named]))
        named[name] = Formula(expression, ("derive", name))
    return named
