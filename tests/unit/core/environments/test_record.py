"""Environments on disk: listed, chosen, removed; damaged ones are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli.entry import main
from core.environments.record import (
    RECORD,
    Environment,
    Record,
    choose,
    chosen_environment,
    executable_in,
    folder_of,
    list_environments,
    read_environment,
    remove,
    write_record,
)
from core.errors import PreflightError, UsageError
from core.training_python import choice_file, chosen_python


@pytest.fixture(autouse=True)
def _nothing_chosen() -> Iterator[None]:
    choice_file().unlink(missing_ok=True)
    yield
    choice_file().unlink(missing_ok=True)


READY = Record("ready", "3.12.14", "2.13.0+cu130", ("hf",), 1_780_000_000.0)


def made(folder: Path, record: Record = READY) -> Environment:
    write_record(folder, record)
    executable_in(folder).parent.mkdir(parents=True, exist_ok=True)
    executable_in(folder).write_bytes(b"")
    return Environment(folder, record)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_environment(tmp_path / "absent") is None
    environment = made(tmp_path / "torch-2.13.0-cu130")
    assert read_environment(environment.folder) == environment
    assert environment.name == "torch-2.13.0-cu130"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "rankdeck-environment", "state": "odd"}', '{"format": 1}']
)
def test_a_damaged_record_is_none(text: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "a").folder
    (folder / RECORD).write_text(text, encoding="utf-8")
    assert read_environment(folder) is None
    assert list_environments(tmp_path) == []


def test_environments_are_listed_by_name(tmp_path: Path) -> None:
    assert list_environments(tmp_path / "absent") == []
    made(tmp_path / "b"), made(tmp_path / "a", Record("making"))
    (tmp_path / "no environment").mkdir()
    assert [one.name for one in list_environments(tmp_path)] == ["a", "b"]


def test_a_whole_one_can_be_chosen_and_only_that(tmp_path: Path) -> None:
    environment = made(tmp_path / "a")
    with pytest.raises(PreflightError, match="is not complete") as refused:
        choose(made(tmp_path / "b", Record("making")))
    assert "environment make b" in refused.value.next_step
    assert chosen_python() is None and not environment.is_chosen
    choose(environment)
    assert chosen_python() == executable_in(environment.folder) and environment.is_chosen


def test_a_removed_one_is_no_longer_chosen(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a"), made(tmp_path / "b")
    choose(first)
    remove(second)
    assert first.is_chosen and not second.folder.exists()
    remove(first)
    assert not choice_file().exists() and list(tmp_path.iterdir()) == []


def test_a_refused_removal_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = made(tmp_path / "a")
    choose(environment)

    def held(source: Path, _target: Path) -> None:
        raise PermissionError(13, "a program of it runs", str(source))

    with monkeypatch.context() as patch:
        patch.setattr("core.environments.record.rename", held)
        with pytest.raises(PreflightError, match="a run may use it"):
            remove(environment)
    assert environment.is_chosen and environment.folder.is_dir()


def test_what_a_removal_left_goes_with_the_next_one(tmp_path: Path) -> None:
    left = made(tmp_path / ".removed-old-1f")
    assert list_environments(tmp_path) == []
    remove(made(tmp_path / "a"))
    assert not left.folder.exists() and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a.", "-x", "ü", "a" * 65, "a b"])
def test_what_is_no_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a name"):
        folder_of(tmp_path, name)
    assert folder_of(tmp_path, "torch-2.13.0+cu130") == tmp_path / "torch-2.13.0+cu130"


def test_all_are_removed_also_the_chosen_one_on_another_drive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, other = tmp_path / "here", tmp_path / "other drive"
    made(here / "a")
    made(here / "b", Record("making"))
    kept = made(other / "not chosen")
    choose(made(other / "c"))
    assert chosen_environment() == read_environment(other / "c")
    assert main(["environment", "remove", "--all", "--folder", str(here)]) == 0
    assert capsys.readouterr().out.split("\n")[:3] == ["Removed: a", "Removed: b", "Removed: c"]
    assert not here.exists() and list(other.iterdir()) == [kept.folder]
    assert chosen_environment() is None and not choice_file().exists()
    assert main(["environment", "remove", "--all", "--folder", str(here)]) == 0


@pytest.mark.parametrize("asked", [["list"], ["use", "a"], ["remove", "a"]])
def test_all_belongs_to_remove_alone(asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a")
    assert main(["environment", *asked, "--all", "--folder", str(tmp_path)]) == 2
    assert "--all belongs to remove" in capsys.readouterr().err and (tmp_path / "a").is_dir()


def test_what_a_program_still_holds_is_said_with_the_time_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "a")

    def held(folder: Path, timeout_s: float) -> None:
        raise PermissionError(13, f"held for {timeout_s} s", str(folder))

    with monkeypatch.context() as patch:
        patch.setattr("core.environments.record.remove_folder", held)
        assert main(["environment", "remove", "a", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "Removed" not in said.out and "a is no longer listed, but programs hold files of it" in said.err
    assert "the next time" in said.err and len(list(tmp_path.iterdir())) == 1
