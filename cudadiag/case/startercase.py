"""Starter cases for `cudadiag init`: a commented case file that runs as it is, with the files that it needs."""

from __future__ import annotations

from importlib import resources

from cudadiag.case.expr import suggestion
from cudadiag.case.models import CaseModel
from cudadiag.errors import UsageError

KINDS = ("kernel", "python", "command")
_PLACEHOLDER = "my_case"


def starter(kind: str, name: str = _PLACEHOLDER) -> str:
    """The text of a starter case file. Raises UsageError for an unknown kind or a name no case can have."""
    return starter_files(kind, name)[f"{name}.yaml"]


def starter_files(kind: str, name: str = _PLACEHOLDER) -> dict[str, str]:
    """File name -> text of a starter case and of the sources that it names, to be written into one folder."""
    if kind not in KINDS:
        near = suggestion(kind, KINDS) or f": there are {', '.join(KINDS)}"
        raise UsageError(f"no starter {kind!r}{near}")
    _check_name(name)
    folder = resources.files("cudadiag.case").joinpath("starters", kind)
    texts = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.is_file()}
    case = texts.pop("case.yaml")
    files = {f"{_PLACEHOLDER}.yaml": case, **dict(sorted(texts.items()))}
    return {file.replace(_PLACEHOLDER, name): text.replace(_PLACEHOLDER, name) for file, text in files.items()}


def _check_name(name: str) -> None:
    from pydantic import ValidationError

    try:
        CaseModel.model_validate({"case": name, "target": {"command": "true"}})
    except ValidationError as error:
        raise UsageError(f"{name!r}: {error.errors()[0]['msg']}") from None
