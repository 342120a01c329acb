"""Kernel names as tools print them, brought to one form: the function's name without return type and arguments.

Tools disagree: `race` (sanitizer XML), `race(float *)` (its text), `void race(float*)` (asserts), `_Z4racePf` (core
files), `deep(int) [clone f(int*)]` and `[clone f(int*)] deep(int)` for clones.
"""

from __future__ import annotations

import re

_KEPT_APART = re.compile(r"\$([^$]+)\$(?=_Z)")
_CLONE = re.compile(r"\[clone [^\]]*\]")
_LENGTH = re.compile(r"\d{1,4}")


def base_name(signature: str | None) -> str | None:
    """The name of a C++ function out of any of the forms above, templates kept: `ns::f<(int)4, float>`. None for
    nothing."""
    if signature is None:
        return None
    text = _CLONE.sub("", signature).strip()
    if "(anonymous namespace)" in text:
        text = text.replace("(anonymous namespace)", "{anonymous}")
    if text.startswith("_Z") or (text.startswith("$") and "$_Z" in text):
        text = demangled_name(text) or text
    text = _before_arguments(text)
    return (_last_word(text) or None) if text else None


def caller_name(signature: str | None) -> str | None:
    """The kernel that a function kept apart inside it belongs to: `tree_flat` of `$tree_flat$_ZN...`. None for other
    names."""
    found = _KEPT_APART.match(signature.strip()) if signature else None
    return base_name(found[1]) if found else None


def without_template(name: str) -> str:
    """The name without its template arguments: `ns::f<(int)4>` becomes `ns::f`."""
    at = name.find("<")
    return name[:at] if at > 0 and "operator<" not in name else name


def _before_arguments(text: str) -> str:
    """The text up to the parenthesis that opens the argument list: the first one outside angle brackets."""
    depth = 0
    for at, char in enumerate(text):
        if char == "<" and not text[:at].endswith("operator"):
            depth += 1
        elif char == ">" and depth and text[at - 1] != "-":
            depth -= 1
        elif char == "(" and depth == 0 and at > 0 and not text[:at].rstrip().endswith("operator"):
            return text[:at].strip()
    return text.strip()


def _last_word(text: str) -> str:
    """What follows the last blank outside brackets: drops the return type of `void f<int, 4>`."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        char = text[at]
        if char in ">)]":
            depth += 1
        elif char in "<([" and depth:
            depth -= 1
        elif char == " " and depth == 0:
            return text[at + 1 :].lstrip("*&")
    return text.lstrip("*&")


def demangled_name(mangled: str) -> str | None:
    """The (possibly nested) name inside an Itanium-mangled symbol, without arguments; None where it is not one.

    Reads plain and nested names only. Template arguments are left out: what they hold is not needed to tell kernels
    apart coarsely, and the sanitizer's forms carry them.
    """
    text = mangled.lstrip("$")
    if "$_Z" in text:  # a clone: $caller$callee; the callee is the function that ran
        text = text[text.rindex("$_Z") + 1 :]
    if not text.startswith("_Z"):
        return None
    at = 2
    if text[at : at + 1] == "L":
        at += 1
    nested = text[at : at + 1] == "N"
    at += 1 if nested else 0
    while nested and text[at : at + 1] in ("K", "V", "r"):
        at += 1
    parts: list[str] = []
    while match := _LENGTH.match(text, at):
        start, end = match.end(), match.end() + int(match[0])
        if end > len(text):
            return None
        part = text[start:end]
        if not part.startswith("_INTERNAL_"):  # nvcc's name for what is static in a file
            parts.append("{anonymous}" if part.startswith("_GLOBAL__N_") else part)
        at = _skip_template(text, end) if nested else end
        if not nested:
            break
    return "::".join(parts) or None


def _skip_template(text: str, at: int) -> int:
    """Past `I...E` after a part of a nested name. Good enough for parts that follow; a wrong guess only ends the
    name early."""
    if text[at : at + 1] != "I":
        return at
    depth, at = 1, at + 1
    while at < len(text) and depth:
        length = _LENGTH.match(text, at)
        if length:
            at = length.end() + int(length[0])
            continue
        depth += {"I": 1, "L": 1, "N": 1, "X": 1, "J": 1, "E": -1}.get(text[at], 0)
        if text[at] == "L":  # literal: L type digits E
            literal = re.compile(r"L[a-z](?:n?\d+)E").match(text, at)
            if literal:
                depth -= 1
                at = literal.end()
                continue
        at += 1
    return at
