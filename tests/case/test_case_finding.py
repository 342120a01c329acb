"""Finding a case: a path, then ./cases, then the bundled ones; schema, reference and starter cases."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cudadiag.case import (
    STARTER_KINDS,
    all_cases,
    find_case,
    json_schema,
    load,
    load_text,
    locate,
    starter,
    starter_files,
)
from cudadiag.case.locate import bundled_folder
from cudadiag.case.models import CaseModel, ObserverName
from cudadiag.case.schema import reference
from cudadiag.errors import UsageError
from harness.observers import OBSERVERS

HERE = Path(__file__).parent
DOCUMENT = HERE.parent.parent / "docs" / "reference" / "case-file.md"


def _write(path: Path, name: str, title: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# a comment\ntitle: '{title}'\ncase: {name}  # here\ntarget: {{command: x}}\n")
    return path


def test_a_path_wins_with_and_without_its_ending(tmp_path: Path) -> None:
    path = _write(tmp_path / "mine.yaml", "other_name", "what it does")
    found = find_case("mine.yaml", tmp_path)
    assert (found.path, found.name, found.origin, found.title) == (path, "other_name", "path", "what it does")
    assert locate("mine", tmp_path) == path
    assert locate(str(path)) == path


def test_a_name_is_looked_for_in_cases_and_then_among_the_bundled(tmp_path: Path) -> None:
    bundled = find_case("crash_from", tmp_path)
    assert bundled.origin == "bundled"
    assert bundled.path.is_relative_to(str(bundled_folder()))
    mine = _write(tmp_path / "cases" / "sub" / "file.yaml", "crash_from")
    found = find_case("crash_from", tmp_path)
    assert (found.path, found.origin, found.group) == (mine, "here", "sub")
    assert found.described == f"case crash_from: {mine} (in ./cases)"


def test_an_ambiguous_name_needs_its_group(tmp_path: Path) -> None:
    _write(tmp_path / "cases" / "a" / "x.yaml", "same")
    second = _write(tmp_path / "cases" / "b" / "x.yaml", "same")
    with pytest.raises(UsageError, match="several cases are named 'same': give a/same or b/same"):
        find_case("same", tmp_path)
    assert locate("b/same", tmp_path) == second


def test_an_unknown_name_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no case 'crash_form': did you mean 'crash_from'"):
        find_case("crash_form", tmp_path)
    with pytest.raises(UsageError, match=r"it is no file, not in \./cases and not bundled"):
        find_case("qqqqqq", tmp_path)
    with pytest.raises(UsageError, match=r"no case file nowhere\.yaml"):
        find_case("nowhere.yaml", tmp_path)


def test_all_cases_shows_each_name_once_and_survives_broken_files(tmp_path: Path) -> None:
    _write(tmp_path / "cases" / "crash_from.yaml", "crash_from", "mine")
    (tmp_path / "cases" / "broken.yaml").write_bytes(b"\xff\x00: [")
    (tmp_path / "cases" / "no_case.yaml").write_text("some: thing\n")
    (tmp_path / "cases" / "half.yaml").write_text("case: half\ntarget: [\n")
    found = all_cases(tmp_path)
    names = [case.name for case in found]
    assert names[:2] == ["crash_from", "half"]
    assert names.count("crash_from") == 1
    assert "verify_attn" in names
    assert found[0].title == "mine"


@pytest.mark.parametrize("kind", STARTER_KINDS)
@pytest.mark.parametrize("name", ["my_case", "other-1.x"])
def test_a_starter_case_loads_as_it_is(tmp_path: Path, kind: str, name: str) -> None:
    for file, text in starter_files(kind, name).items():
        (tmp_path / file).write_text(text)
    case = load(tmp_path / f"{name}.yaml")
    assert case.name == name
    assert len(case.sweep) > 5
    assert case.target.kind == kind
    assert case.request(case.sweep.shape(0), folder="f").target["kind"] == kind
    assert set(case.hashes()) == set(starter_files(kind, name))
    assert starter(kind, name) == (tmp_path / f"{name}.yaml").read_text()


@pytest.mark.parametrize("kind", STARTER_KINDS)
def test_the_commented_keys_of_a_starter_are_right_too(kind: str) -> None:
    """`# key: value` uncommented must load: advice that does not work is worse than none."""
    for match in re.finditer(r"^( *)# (\w+: [^#\n]*)", starter(kind), re.MULTILINE):
        text = starter(kind).replace(match.group(), match[1] + match[2], 1)
        folder = Path(str(load_text.__code__.co_filename)).parent / "starters" / kind
        load_text(text.encode(), folder / "my_case.yaml")


def test_a_wrong_starter_is_refused() -> None:
    with pytest.raises(UsageError, match="no starter 'kernl': did you mean 'kernel'"):
        starter("kernl")
    with pytest.raises(UsageError, match="needs a name of letters"):
        starter("kernel", "a b")


def test_the_schema_is_a_schema_and_accepts_every_bundled_case() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for found in all_cases(HERE):
        data = json.loads(json.dumps(yaml.safe_load(found.path.read_text(encoding="utf-8"))))
        assert not list(validator.iter_errors(data)), found.path
    for kind in STARTER_KINDS:
        validator.validate(yaml.safe_load(starter(kind)))


@pytest.mark.parametrize(
    "keys",
    [
        {"titel": "x"},
        {"target": {"service": "x"}},
        {"sweep": {"n": []}},
        {"sweep": {"n": 3}},
        {"sweep": {"n": {"form": 1}}},
        {"observer": "memchek"},
        {"limits": {"timeout": [3]}},
        {"target": {"kernel": {"source": "x.cu"}}},
    ],
)
def test_the_schema_refuses_what_loading_refuses(keys: dict[str, Any]) -> None:
    data = {"case": "c", "target": {"command": "x"}, **keys}
    assert list(jsonschema.Draft202012Validator(json_schema()).iter_errors(data))
    with pytest.raises(UsageError):
        load_text(json.dumps(data).encode(), HERE / "x.yaml").sweep  # noqa: B018


def test_the_observers_are_those_of_the_harness() -> None:
    assert set(ObserverName.__args__) == set(OBSERVERS)  # type: ignore[attr-defined]


def test_the_reference_page_is_up_to_date() -> None:
    """The page holds the tables that the models give; CUDADIAG_UPDATE_SNAPSHOTS=1 writes them anew."""
    page = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- generated: begin -->\n")
    _, _, after = rest.partition("<!-- generated: end -->")
    made = f"{before}<!-- generated: begin -->\n{reference()}<!-- generated: end -->{after}"
    if os.environ.get("CUDADIAG_UPDATE_SNAPSHOTS"):
        DOCUMENT.write_text(made, encoding="utf-8")
    assert made == DOCUMENT.read_text(encoding="utf-8")


def test_the_reference_names_every_key() -> None:
    text = reference()
    for name, field in CaseModel.model_fields.items():
        assert f"| `{field.alias or name}` |" in text


def test_every_example_of_the_reference_page_loads() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 3
    for example in examples:
        data = yaml.safe_load(example)
        text = example if "case" in data else f"case: example\n{example}"
        if "target" not in data:
            text += "target: {command: x}\n"
        load_text(text.encode(), HERE / "material" / "example.yaml")


def test_the_messages_on_the_reference_page_are_real() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    shown = re.findall(r"^names\.yaml:.*", page, re.MULTILINE)
    real = (HERE / "wrong" / "names.txt").read_text(encoding="utf-8").splitlines()
    assert len(shown) >= 3
    assert set(shown) <= set(real)


def test_a_path_is_shown_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("case: [\n")
    assert str(locate("mine.yaml")) == "mine.yaml"
    with pytest.raises(UsageError, match=r"^mine\.yaml:2:1: not YAML: "):
        load(locate("mine.yaml"))
    _write(tmp_path / "cases" / "a.yaml", "here_it_is")
    assert str(locate("here_it_is")) == "cases/a.yaml"
