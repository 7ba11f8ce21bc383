"""Looking at the dataset of a draft while its path is typed: never all of a drive, and one path at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.draft import draft_problems
from app.draft.draft import Draft
from app.draft.draft_checks_controller import DraftChecksController
from app.threads.background import OperationRunner
from core.data import listing
from core.data.dataset import is_whole_drive, list_dataset
from core.errors import DatasetError

pytestmark = pytest.mark.windows


@pytest.fixture
def drafting(qapp: object, tmp_path: Path) -> Iterator[DraftChecksController]:
    runner = OperationRunner()
    assert qapp is not None
    made = DraftChecksController(runner, tmp_path / "runs")
    yield made
    made.close()
    runner.close()


def type_path(drafting: DraftChecksController, text: str) -> None:
    drafting.update(Draft(recipe="minigpt", dataset=text), None, [])


def test_notes_on_another_dataset_go_at_once(drafting: DraftChecksController, tmp_path: Path) -> None:
    noted: list[tuple[str, ...]] = []
    for name in ("a", "a", "b"):
        drafting.noted.connect(noted.append)
        type_path(drafting, str(tmp_path / name))
        drafting.noted.disconnect()
    assert noted == [(), ()], "once for each dataset"


def test_a_whole_drive_is_not_walked(
    drafting: DraftChecksController, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[str] = []
    monkeypatch.setattr(listing.os, "walk", lambda root, **_: walked.append(str(root)) or iter(()))
    root = Path.cwd().anchor
    type_path(drafting, root)
    qtbot.waitUntil(lambda: drafting._data.answer is not None)
    problem = drafting._data.answer
    assert isinstance(problem, DatasetError) and problem.title == "The dataset is a whole drive"
    assert walked == []


def test_only_the_path_that_was_typed_last_is_read_on(
    drafting: DraftChecksController, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "ab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.txt").write_text(name, encoding="utf-8")
    began, go, looked = threading.Event(), threading.Event(), []

    def slowly(path: str, rule: str, is_stopped: Callable[[], bool]) -> object:
        looked.append(path)
        began.set()
        go.wait(30)
        return list_dataset(path, rule, is_stopped)

    monkeypatch.setattr(draft_problems, "list_dataset", slowly)
    type_path(drafting, str(tmp_path / "a"))
    qtbot.waitUntil(began.is_set)
    type_path(drafting, str(tmp_path / "a b"))
    type_path(drafting, str(tmp_path / "ab"))
    qtbot.waitUntil(lambda: not drafting._data._later.isActive())
    assert looked == [str(tmp_path / "a")], "the others wait, whatever a slow drive does"
    go.set()
    qtbot.waitUntil(lambda: drafting.size is not None)
    assert drafting.size is not None and drafting.size.path == str(tmp_path / "ab")
    assert looked == [str(tmp_path / "a"), str(tmp_path / "ab")]


def test_a_walk_ends_when_it_is_not_needed(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"folder {number}").mkdir()
        (tmp_path / f"folder {number}" / "text.txt").write_text("text", encoding="utf-8")
    assert len(list_dataset(str(tmp_path)).files) == 5
    asked: list[int] = []
    with pytest.raises(DatasetError):
        list_dataset(str(tmp_path), "auto", lambda: asked.append(1) or len(asked) > 2)
    assert len(asked) == 3


def test_whole_drives_are_known(tmp_path: Path) -> None:
    assert is_whole_drive(tmp_path.anchor) and is_whole_drive(f" {tmp_path.anchor} ")
    others = ["", "stdlib://", "hf://a/b", str(tmp_path), "text.txt", r"\\server\share", r"\\server\share\data"]
    assert [text for text in others if is_whole_drive(text)] == []
