"""`cudadiag completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes cudadiag's words in a shell.

    \b
    Examples:
      cudadiag completion bash > ~/.local/share/bash-completion/completions/cudadiag
      cudadiag completion zsh > ~/.zfunc/_cudadiag
      cudadiag completion fish > ~/.config/fish/completions/cudadiag.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "cudadiag", "_CUDADIAG_COMPLETE").source())
