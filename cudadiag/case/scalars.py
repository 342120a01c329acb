"""What a plain YAML scalar means, and the traps: spellings that YAML 1.1 and 1.2 read differently.

Only spellings on which both versions and the reader of the file agree are accepted; the rest are errors with advice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PlainValue = int | float | str | bool | None


@dataclass(frozen=True)
class Trap:
    """A spelling that readers disagree on: how they read it, and what to write instead."""

    readings: str
    write: str
    exponent: bool = False  # `1e3`, harmless where only a real number can stand
    cut: bool = False  # a call cut at its comma: what stands around it is spoilt too

    @property
    def advice(self) -> str:
        return f"{self.readings}, {self.write}"


_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_RADIX = re.compile(r"[-+]?0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"[-+]?0[0-9_]+", re.ASCII)
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?", re.ASCII)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_ACCIDENTS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_MAX_DIGITS = 4000


def plain_scalar(text: str) -> tuple[PlainValue, Trap | None]:
    """Value of an unquoted scalar, and the trap it is, if it is one. Total: any text has a value."""
    if text in _NULLS:
        return None, None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE, None
    trap = _trap(text)
    if trap is not None:
        return (float(text) if trap.exponent else text), trap
    if _INT.fullmatch(text) or _RADIX.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text), None
    if text.lower().lstrip("+-") in (".inf", ".nan"):
        return float(text.replace(".", "")), None
    return text, None


def _integer(text: str) -> tuple[PlainValue, Trap | None]:
    if len(text) > _MAX_DIGITS:
        return text, Trap(f"a number of {len(text)} digits", "write it as an expression such as 2**4096")
    return int(text, 0), None


def _trap(text: str) -> Trap | None:
    if text.lower() in _ACCIDENTS and text in (text.lower(), text.upper(), text.capitalize()):
        readings = f"{text} is a truth value in YAML 1.1 and a text in YAML 1.2"
        return Trap(readings, f"write {_ACCIDENTS[text.lower()]}, or '{text}' for the text")
    if _EXPONENT.fullmatch(text):
        return _exponent(text)
    if _SEXAGESIMAL.fullmatch(text):
        return Trap(f"{text} is a number to base 60 in YAML 1.1 and a text in YAML 1.2", f"write '{text}' for the text")
    if _OCTAL.fullmatch(text) and text.strip("+-0_"):
        return _octal(text)
    if _UNDERSCORES.fullmatch(text):
        return Trap(f"{text} is a number in YAML 1.1 and a text in YAML 1.2", f"write {text.replace('_', '')}")
    return None


def _octal(text: str) -> Trap:
    digits = text.lstrip("+-0_").replace("_", "")
    if set(digits) & set("89"):
        return Trap(f"{text} is a number or a text, as the reader likes", f"write {digits}, or '{text}' for the text")
    readings = f"{text} is {int(digits, 8)} in YAML 1.1 (octal) and {digits} in YAML 1.2"
    return Trap(readings, f"write {digits} or 0o{digits}, or '{text}' for the text")


def _exponent(text: str) -> Trap:
    mantissa, _, exponent = text.lower().partition("e")
    value = float(text)
    choices = [f"{mantissa}.0e{exponent} for the real number"]
    if value.is_integer() and abs(value) < 1e16:
        choices.insert(0, f"{int(value)} for the integer")
    readings = f"{text} is a text in YAML 1.1 and a real number in YAML 1.2"
    return Trap(readings, f"write {', or '.join(choices)}", exponent=True)
