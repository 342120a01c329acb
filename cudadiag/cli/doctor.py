"""`cudadiag doctor`: what this machine can do, what is missing, and what to install."""

from __future__ import annotations

import click

from cudadiag.cli.options import json_option
from cudadiag.report.documents import DOCUMENT_VERSION, DoctorDocument, to_text
from cudadiag.report.style import strong

STATE_COLOURS = {"ok": "green", "missing": "red", "absent": "white", "unknown": "yellow"}


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Look at the driver, the GPUs, the CUDA parts and the tools, and say what is missing.

    Ends with 1 if something that cudadiag needs here is missing. `absent` is not needed.

    \b
    Examples:
      cudadiag doctor
      cudadiag doctor --json | jq '.checks[] | select(.state == "missing")'
    """
    from cudadiag.session.survey import survey

    checks = survey()
    code = 1 if any(check.state == "missing" for check in checks) else 0
    if as_json:
        click.echo(to_text(DoctorDocument("doctor", DOCUMENT_VERSION, code, checks)))
        return code
    width = max(len(check.name) for check in checks)
    for check in checks:
        state = click.style(f"{check.state:<8}", fg=STATE_COLOURS[check.state])
        click.echo(f"{state} {check.name:<{width}}  {check.found}")
        if check.advice:
            click.echo(f"{'':<9}{'':<{width}}  {strong('->')} {check.advice}")
    return code
