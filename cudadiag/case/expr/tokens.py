"""The characters of an expression to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.case.expr.tree import MAX_TEXT, ExpressionError

_TOKEN = re.compile(
    r"""
    (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<int>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|\d+)
  | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<op>\*\*|//|<<|>>|<=|>=|==|!=|[-+*/%&|^~<>()\[\],])
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_ADVICE = {
    "=": "write == to compare",
    "!": "write `not`, or != to compare",
    "&&": "write `and`",
    "||": "write `or`",
    "?": "there is no conditional; use min, max or a comparison",
    "{": "braces belong to command lines; here a name stands alone",
    "}": "braces belong to command lines; here a name stands alone",
    "'": "the text is not closed",
    '"': "the text is not closed",
    ".": "write a digit beside the point",
    "×": "write *",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "−": "write - (this is a typographic minus)",
}


@dataclass(frozen=True)
class Token:
    kind: str  # "int", "float", "string", "name", "op" or "end"
    text: str
    at: int


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, an `end` token last. Raises ExpressionError."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"an expression of {len(text)} characters; the limit is {MAX_TEXT}", text, MAX_TEXT)
    tokens: list[Token] = []
    position = _after_blanks(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unknown_character(text, position)
        token = Token(str(match.lastgroup), match.group(), position)
        _refuse_glued(text, token, match.end())
        _refuse_doubled(text, token, match.end())
        tokens.append(token)
        position = _after_blanks(text, match.end())
    tokens.append(Token("end", "", len(text)))
    return tokens


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _unknown_character(text: str, at: int) -> ExpressionError:
    character = text[at]
    advice = _ADVICE.get(text[at : at + 2]) or _ADVICE.get(character)
    tail = f": {advice}" if advice else " means nothing in an expression"
    return ExpressionError(f"{character!r}{tail}", text, at)


def _refuse_glued(text: str, token: Token, end: int) -> None:
    """`017`, `1_000` and `2x`: numbers that other languages read differently, or not at all."""
    if token.kind not in ("int", "float"):
        return
    if token.kind == "int" and re.fullmatch(r"0\d+", token.text) and token.text.strip("0"):
        stripped = token.text.lstrip("0")
        raise ExpressionError(f"{token.text}: a leading zero means octal in C; write {stripped}", text, token.at)
    if end < len(text) and (text[end].isalnum() or text[end] in "_."):
        glued = re.match(r"[\w.]+", text[token.at :])
        shown = glued.group() if glued else token.text
        advice = "write " + shown.replace("_", "") if re.fullmatch(r"[\d_]+", shown) else "a * is missing, or a blank"
        raise ExpressionError(f"{shown} is not a number: {advice}", text, token.at)


def _refuse_doubled(text: str, token: Token, end: int) -> None:
    """`&&` and `||` of C would read as two operators."""
    if token.text in ("&", "|") and text[end : end + 1] == token.text:
        raise ExpressionError(f"{token.text * 2}: {_ADVICE[token.text * 2]}", text, token.at)


def number(token: Token) -> int | float:
    """The value of an int or float token. Integers may be of any size."""
    if token.kind == "float":
        return float(token.text)
    base = {"0x": 16, "0b": 2, "0o": 8}.get(token.text[:2].lower(), 10)
    return int(token.text, base)


def string(token: Token, text: str) -> str:
    """The value of a string token: quotes off, the five escapes replaced. Raises ExpressionError for another escape."""
    body = token.text[1:-1]
    out: list[str] = []
    position = 0
    while position < len(body):
        character = body[position]
        if character == "\\":
            position += 1
            if body[position] not in _ESCAPES:
                known = r"\n \t \\ \' and \""
                raise ExpressionError(
                    f"\\{body[position]} is not an escape; there are {known}", text, token.at + position
                )
            character = _ESCAPES[body[position]]
        out.append(character)
        position += 1
    return "".join(out)
