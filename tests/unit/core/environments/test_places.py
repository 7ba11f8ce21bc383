"""Places of what takes room: chosen once, kept where Settings keeps folders, and nothing moved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.environments.places import (
    Places,
    current_places,
    environment_folders,
    has_runs,
    keep_places,
    models_folder,
    places_on,
)
from core.errors import PreflightError
from core.paths import HUB_VARIABLES, RUNS_VARIABLE, data_folder, default_runs_dir, model_variables, runs_dir_file
from core.processes.program_environment import program_environment
from tests.helpers.kept_folders import nothing_chosen


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*HUB_VARIABLES, RUNS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    with nothing_chosen():
        yield


def test_a_drive_holds_all_three_in_one_folder(tmp_path: Path) -> None:
    places = places_on(tmp_path, current_places())
    assert places == Places(*(tmp_path / "Rankdeck" / name for name in ("environments", "models", "runs")))
    assert places_on(tmp_path / "Rankdeck", current_places()) == places


def test_what_was_chosen_is_used_from_then_on(tmp_path: Path) -> None:
    before = current_places()
    assert before.environments == data_folder() / "environments" and environment_folders() == (before.environments,)
    places = places_on(tmp_path / "Läufe", before)
    keep_places(places)
    assert current_places() == places and default_runs_dir() == places.runs
    assert runs_dir_file().read_text(encoding="utf-8") == f"{places.runs}\n", "the file that Settings writes"
    assert environment_folders() == (places.environments, before.environments), "older ones are still found"
    env = program_environment({"PATH": "x"})
    assert env["HF_HUB_CACHE"] == str(places.models / "hub") and env["HF_DATASETS_CACHE"] == str(
        places.models / "datasets"
    )
    assert "HF_HOME" not in env, "a sign-in stays where it is"


def test_runs_and_what_variables_set_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Places(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    (now.runs / "one").mkdir(parents=True)
    assert not has_runs(now.runs) and places_on(tmp_path / "d", now).runs != now.runs
    (now.runs / "one" / "run.toml").touch()
    assert places_on(tmp_path / "d", now).runs == now.runs
    monkeypatch.setenv("HF_HOME", str(tmp_path / "own"))
    assert models_folder() == tmp_path / "own" and places_on(tmp_path / "d", now).models == now.models
    assert model_variables(os.environ) == {}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PreflightError, match="could not be made"):
        keep_places(places_on(tmp_path / "file", current_places()))


def test_a_persons_pythonhome_does_not_reach_another_python() -> None:
    env = program_environment({"PYTHONHOME": "C:/Python27", "PATH": "x"})
    assert "PYTHONHOME" not in env and env["PATH"] == "x"
