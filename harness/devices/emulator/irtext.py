"""LLVM IR as text: what all that write it have in common."""

from __future__ import annotations

from collections.abc import Iterable


class IrText:
    """Lines of IR. `helpers` are names of IR helper functions they call (`need`), `declared` whole `declare` lines
    (`intrinsic`)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.declared: set[str] = set()
        self._temporaries = 0

    def line(self, text: str) -> None:
        """One IR instruction without a result."""
        self.lines.append("  " + text)

    def emit(self, rhs: str) -> str:
        """One IR instruction with a result; returns its name (`%tN`)."""
        self._temporaries += 1
        name = f"%t{self._temporaries}"
        self.lines.append(f"  {name} = {rhs}")
        return name

    def need(self, helper: str) -> None:
        """Ask for the IR helper function `helper`. Its text may hold `declare` lines: the module keeps one of each."""
        self.helpers.add(helper)

    def call(self, helper: str, result: str, arguments: Iterable[tuple[str, str]]) -> str:
        """Call the helper function `@helper` (requested by this) with (IR type, value) pairs; returns its result."""
        self.need(helper)
        return self.emit(f"call {result} @{helper}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def intrinsic(self, name: str, result: str, arguments: Iterable[tuple[str, str]]) -> str:
        """Call an LLVM intrinsic with (IR type, value) pairs, declaring it."""
        pairs = list(arguments)
        self.declared.add(f"declare {result} @{name}({', '.join(t for t, _ in pairs)})")
        return self.emit(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in pairs)})")
