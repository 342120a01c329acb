"""What a plain YAML scalar means, and the traps: spellings that YAML 1.1 and 1.2 read differently.

Only spellings on which both versions and the reader of the file agree are accepted; the rest are errors with advice.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

PlainValue = int | float | str | bool | None


@dataclass(frozen=True)
class Trap:
    """A spelling that readers disagree on. `exponent` marks `1e3`, harmless where only a real number can stand."""

    advice: str
    exponent: bool = False


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
        return (math.nan if "n" == text.lower().lstrip("+-.")[:1] else math.copysign(math.inf, -1 if text[0] == "-" else 1)), None
    return text, None


def _integer(text: str) -> tuple[PlainValue, Trap | None]:
    if len(text) > _MAX_DIGITS:
        return text, Trap(f"a number of {len(text)} digits, write it as an expression such as 2**4096")
    return int(text, 0), None


def _trap(text: str) -> Trap | None:
    if text.lower() in _ACCIDENTS and text in (text.lower(), text.upper(), text.capitalize()):
        meant = _ACCIDENTS[text.lower()]
        return Trap(f"{text} is a truth value in YAML 1.1 and a text in YAML 1.2, write {meant}, or '{text}' for the text")
    if _EXPONENT.fullmatch(text):
        return Trap(_exponent_advice(text), exponent=True)
    if _SEXAGESIMAL.fullmatch(text):
        return Trap(f"{text} is a number to base 60 in YAML 1.1 and a text in YAML 1.2, write '{text}' for the text")
    if _OCTAL.fullmatch(text) and text.strip("+-0_"):
        return Trap(_octal_advice(text))
    if _UNDERSCORES.fullmatch(text):
        return Trap(f"{text} is a number in YAML 1.1 and a text in YAML 1.2, write {text.replace('_', '')}")
    return None


def _octal_advice(text: str) -> str:
    digits = text.lstrip("+-0_").replace("_", "")
    if not digits.isdigit() or set(digits) & set("89"):
        return f"{text} is a number or a text depending on the reader, write {digits}, or '{text}' for the text"
    return f"{text} is {int(digits, 8)} in YAML 1.1 (octal) and {digits} in YAML 1.2, write {digits} or 0o{digits}, or '{text}' for the text"


def _exponent_advice(text: str) -> str:
    mantissa, _, exponent = text.lower().partition("e")
    value = float(text)
    choices = [f"{mantissa}.0e{exponent} for the real number"]
    if value.is_integer() and abs(value) < 1e16:
        choices.insert(0, f"{int(value)} for the integer")
    return f"{text} is a text in YAML 1.1 and a real number in YAML 1.2, write {', or '.join(choices)}"
