"""Helper functions: IR text written by Python functions, collected by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..irtext import IrText


class HelperText(IrText):
    """The straight-line body of one helper function; arguments are `%a0`, `%a1`, ..."""


Body = Callable[..., str]
_KNOWN: dict[str, tuple[str, tuple[str, ...], Body, str]] = {}


def define(name: str, result: str, parameters: Sequence[str], body: Body, attributes: str = "nounwind") -> str:
    """Register the helper `@name`; `body(code, %a0, ...)` emits it and returns its result. Returns the name."""
    _KNOWN[name] = (result, tuple(parameters), body, attributes)
    return name


def known() -> list[str]:
    """Names of all helper functions."""
    return sorted(_KNOWN)


def helpers(names: Iterable[str]) -> str:
    """IR text of the named helper functions and all they call: `declare` lines first, internal linkage.

    Raises KeyError for a name that is no helper.
    """
    wanted, texts, declared = list(dict.fromkeys(names)), [], set()
    for name in wanted:
        result, parameters, body, attributes = _KNOWN[name]
        code = HelperText()
        value = body(code, *[f"%a{k}" for k in range(len(parameters))])
        arguments = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(parameters))
        head = f"define internal {result} @{name}({arguments}) {attributes} {{"
        texts.append("\n".join([head, *code.lines, f"  ret {result} {value}", "}"]))
        declared |= code.declared
        wanted += [called for called in sorted(code.helpers) if called not in wanted]
    return "\n".join([*sorted(declared), *texts]) + "\n"
