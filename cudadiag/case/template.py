"""Texts with expressions in braces: `--q={q_len * 2}`. Literal braces are doubled: `{{` and `}}`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cudadiag.case.axes import format_value
from cudadiag.case.expr import Expression, ExpressionError, parse


@dataclass(frozen=True)
class Template:
    """Literal texts and expressions, in order. `text` is what was written."""

    text: str
    parts: tuple[str | Expression, ...]
    offsets: tuple[int, ...]  # where each part begins in `text`

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def single(self) -> Expression | None:
        """The expression, where the template is nothing else: its value then keeps its type."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Expression) else None

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with every expression replaced by its value. Raises ExpressionError."""
        return "".join(self._part(part, at, values) for part, at in zip(self.parts, self.offsets, strict=True))

    def check_names(self, known: Mapping[str, Any]) -> None:
        """Raises ExpressionError, its offset within the whole text, at the first unknown name."""
        for part, at in zip(self.parts, self.offsets, strict=True):
            if isinstance(part, Expression):
                with _shifted(self.text, at):
                    part.check_names(known)

    def _part(self, part: str | Expression, at: int, values: Mapping[str, Any]) -> str:
        if isinstance(part, str):
            return part
        with _shifted(self.text, at):
            value = part.evaluate(values)
            if isinstance(value, tuple):
                raise ExpressionError("a list cannot be written into a text, use one value", part.text, 0)
            return format_value(value)


class _shifted:
    """Moves the offset of an ExpressionError inside braces to its place in the whole text."""

    def __init__(self, text: str, by: int) -> None:
        self.text = text
        self.by = by

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ExpressionError):
            raise ExpressionError(error.message, self.text, error.offset + self.by, hint=error.hint) from None


def parse_template(text: str) -> Template:
    """A template from its text. Raises ExpressionError."""
    parts: list[str | Expression] = []
    offsets: list[int] = []
    literal, literal_at, position = "", 0, 0
    while position < len(text):
        pair = text[position : position + 2]
        if pair in ("{{", "}}"):
            literal += pair[0]
            position += 2
        elif text[position] == "}":
            raise ExpressionError("a single }, write }} for the character itself", text, position)
        elif text[position] == "{":
            if literal:
                parts.append(literal)
                offsets.append(literal_at)
            end = _closing(text, position)
            with _shifted(text, position + 1):
                parts.append(_inside(text[position + 1 : end]))
            offsets.append(position + 1)
            literal, literal_at, position = "", end + 1, end + 1
        else:
            literal += text[position]
            position += 1
    if literal or not parts:
        parts.append(literal)
        offsets.append(literal_at)
    return Template(text, tuple(parts), tuple(offsets))


def literal_template(text: str) -> Template:
    """A template of a text in which braces mean nothing."""
    return Template(text, (text,), (0,))


def _inside(body: str) -> Expression:
    if not body.strip():
        raise ExpressionError("nothing between the braces, write {{}} for the characters themselves", body, 0)
    return parse(body)


def _closing(text: str, opening: int) -> int:
    """Where the brace opened at `opening` is closed; braces within quotes do not count."""
    quote = ""
    for position in range(opening + 1, len(text)):
        character = text[position]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}":
            return position
    raise ExpressionError("a { without its }, write {{ for the character itself", text, opening)


def split_command(text: str) -> list[str]:
    """A command line to its words, as a shell would, but blanks and quotes inside braces stay. Raises ExpressionError.

    No shell is run; a character that only a shell understands is refused with advice.
    """
    held: list[str] = []
    masked = ""
    position = 0
    while position < len(text):
        if text[position] == "{" and text[position : position + 2] != "{{":
            end = _closing(text, position)
            held.append(text[position : end + 1])
            masked += f"\ue000{len(held) - 1}\ue001"
            position = end + 1
        else:
            step = 2 if text[position : position + 2] in ("{{", "}}") else 1
            masked += text[position : position + step]
            position += step
    try:
        words = shlex.split(masked)
    except ValueError as error:
        raise ExpressionError(f"{str(error).lower()}, close the quote", text, 0) from None
    _refuse_shell(words, text)
    for index, hole in enumerate(held):
        words = [word.replace(f"\ue000{index}\ue001", hole) for word in words]
    return words


_SHELL_WORDS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "&>"})


def _refuse_shell(words: list[str], text: str) -> None:
    for word in words:
        if word in _SHELL_WORDS:
            message = f"{word} needs a shell and none is run, write [sh, -c, '...']"
            raise ExpressionError(message, text, max(text.find(word), 0))
