"""Makes the reference pages that come from the program itself: `python docs/make.py`, or `--check` to compare only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from cudadiag.cli.group import load
from cudadiag.cli.main import cli
from cudadiag.cli.table import COMMANDS

DOCS = Path(__file__).parent
NOTE = "<!-- made by docs/make.py: do not edit -->"
WIDTH = 100


def commands_page() -> str:
    """The help of every command."""
    context = click.Context(cli, info_name="cudadiag", terminal_width=WIDTH, max_content_width=WIDTH)
    parts = [NOTE, "# Commands", "", *_block(cli.get_help(context))]
    for entry in COMMANDS:
        command = load(entry)
        inner = click.Context(command, info_name=entry.name, parent=context)
        parts += ["", f"## cudadiag {entry.name}", "", *_block(command.get_help(inner))]
        for name, below in getattr(command, "below", dict)().items():
            words = f"{entry.name} {name}"
            deeper = click.Context(below, info_name=words, parent=context)
            parts += ["", f"## cudadiag {words}", "", *_block(below.get_help(deeper))]
    return "\n".join(parts) + "\n"


def _block(text: str) -> Iterator[str]:
    yield "```text"
    yield from (line.rstrip() for line in text.splitlines())
    yield "```"


PAGES = {"reference/commands.md": commands_page}


def main(words: list[str]) -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in words:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    print(
        "\n".join(f"{'stale' if '--check' in words else 'made'}: docs/{name}" for name in stale)
        or "all pages are current"
    )
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
