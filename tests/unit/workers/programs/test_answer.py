"""A program's answer: what the work returns, or its error as `core.recipes.check.error_in` reads it back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DatasetError, PreflightError, RankdeckError
from core.machine.packages import MissingPackageError
from core.recipes.check import error_in
from workers.programs.answer import answer


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    request = tmp_path / "request.json"
    request.write_text('{"number": 3}', encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["program", "RECIPE", str(request)])
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return values


def test_the_work_gets_the_request_and_its_folder(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print("no end of line", end="")
    answer(lambda request, folder: {**request, "folder": str(folder)})
    assert said(capsys) == {"number": 3, "folder": str(asked)}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConfigError("width", "Odd.", "Choose 4.", option="--set width=4"), ConfigError),
        (DatasetError("Empty.", "Choose another.", title="Nothing there"), DatasetError),
        (MissingPackageError(["peft"], "LoRA"), PreflightError),
    ],
)
def test_an_error_arrives_as_it_was(
    error: RankdeckError, kind: type[RankdeckError], asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_request: dict[str, Any], _folder: Path) -> dict[str, Any]:
        raise error

    answer(fail, defects=False)
    values = said(capsys)
    read = error_in(values, kind)
    assert type(read) is type(error) and values["kind"] == type(error).__name__ and asked.is_dir()
    assert (read.title, read.cause, read.next_step) == (error.title, error.cause, error.next_step)
    assert isinstance(error, MissingPackageError) or read.window_step == error.window_step
    for name in ("field", "packages"):
        assert getattr(read, name, None) == getattr(error, name, None)


@pytest.mark.usefixtures("asked")
def test_a_defect_is_explained_where_that_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    answer(lambda request, _: {"half": request["number"] / 0})
    assert said(capsys)["title"] == "The training code failed"
    with pytest.raises(ZeroDivisionError):
        answer(lambda request, _: {"half": request["number"] / 0}, defects=False)
    assert error_in({"notes": []}) is None
