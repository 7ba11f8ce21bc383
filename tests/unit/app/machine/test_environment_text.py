"""Texts of the dialog that sets up PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.machine.environment_text import (
    RUNS_STAY,
    Offered,
    choice_text,
    chosen_place,
    extra_notes,
    place_choices,
    place_lines,
    share_of,
    size_text,
)
from core.environments.extras import Extra
from core.environments.make import Progress
from core.environments.places import Places
from core.machine.drives import Drive
from core.machine.torch_builds import BuildChoice

pytestmark = pytest.mark.windows
EXTRAS = (
    Extra("hf", "Models", "Needed by X."),
    Extra("bpe", "Tokens"),
    Extra("deepspeed", "DeepSpeed", "Why", "No wheel."),
)


@pytest.fixture
def now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "RANKDECK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Places(tmp_path / "a", tmp_path / "b", tmp_path / "c")


def test_each_drive_is_offered_with_its_room(now: Places, tmp_path: Path) -> None:
    other = tmp_path / "other drive"
    offered = Offered(BuildChoice("cpu", ""), EXTRAS, now, (Drive(other, 812 * 10**9, 10**12),), 74 * 10**9)
    first, second = place_choices(offered)
    assert first.places == now and first.text.startswith("As now: ") and first.text.endswith(", 74 GB free")
    assert second.text == f"{other}, 812 GB free"
    root = other / "Rankdeck"
    assert second.places == Places(root / "environments", root / "models", root / "runs")
    assert chosen_place(other, None, now).places == second.places
    assert chosen_place(root, 10**9, now).places == second.places, "the folder itself was chosen"


def test_what_is_kept_where_is_said(now: Places, tmp_path: Path) -> None:
    assert dict(place_lines(now, now)) == {
        "PyTorch": str(now.environments),
        "Models": str(now.models),
        "Runs": str(now.runs),
    }
    moved = chosen_place(tmp_path / "d", None, now).places
    assert dict(place_lines(moved, now))["Runs"] == f"{moved.runs} (from the next start of Rankdeck)"
    (now.runs / "one").mkdir(parents=True)
    (now.runs / "one" / "run.toml").touch()
    stays = chosen_place(tmp_path / "d", None, now).places
    assert dict(place_lines(stays, now))["Runs"] == f"{now.runs} ({RUNS_STAY})"


def test_a_check_box_has_a_note_where_there_is_one() -> None:
    assert extra_notes(EXTRAS) == {"hf": "Needed by X.", "deepspeed": "No wheel."}
    text = choice_text(Places(Path("e"), Path("m"), Path("r")), EXTRAS, ("hf", "bpe"), Path("w"))
    assert text == "In e, with: Models; Tokens. Everything is taken from w."


def test_sizes_are_said_with_the_room(tmp_path: Path) -> None:
    assert size_text("Download: 2 GB.", None, tmp_path) == "Download: 2 GB."
    assert size_text("Download: 2 GB.", 10**9, tmp_path).startswith("Download: 2 GB. 1 GB free on ")


def test_the_share_is_known_while_something_is_downloaded() -> None:
    assert share_of(Progress("Testing it")) is None
    assert share_of(Progress("Downloading", 0, 4)) == 0
    assert share_of(Progress("Downloading", 1, 4)) == 250
    assert Progress("Downloading", 1_000_000, 4_000_000).text == "Downloading: 1 MB of 4 MB"
    assert Progress("Testing it").text == "Testing it"
