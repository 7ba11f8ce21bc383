"""Names, tags, notes and the bin, from the window and from the command line at once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from core.cli import main
from core.config.config_file import to_toml
from core.files.atomic import write_atomic
from core.processes.identity import own
from core.run_folder.notes import NOTES, RunNotes, read_notes, write_notes
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import START_S, Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [pytest.mark.windows, OFFSCREEN_NOISE]
SOON_MS = 10_000
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the person's own bin would be used")


@pytest.fixture
def three(runs_dir: Path) -> list[Path]:
    """Three finished runs, the newest first."""
    for number, name in enumerate(("c", "b", "a")):
        write_lines(runs_dir / name, Shape(steps=20), created=START_S + number)
    return [runs_dir / name for name in ("a", "b", "c")]


def opened(open_window: OpenWindow, qtbot: QtBot, shown: Path, count: int = 3) -> Rankdeck:
    rankdeck = open_window()
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == count, timeout=SOON_MS)
    rankdeck.showing.show(shown)
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up, timeout=SOON_MS)
    return rankdeck


def answer(rankdeck: Rankdeck, text: str) -> QInputDialog:
    """Types into the dialog that is open, and accepts it."""
    dialog = rankdeck.window.findChildren(QInputDialog)[-1]
    dialog.setTextValue(text)
    dialog.accept()
    return dialog


def labels(rankdeck: Rankdeck) -> list[str]:
    return [row.record.label for row in rankdeck.runs.model.rows()]


def test_names_from_both_sides(open_window: OpenWindow, qtbot: QtBot, three: list[Path], runs_dir: Path) -> None:
    rankdeck = opened(open_window, qtbot, three[1])
    view = rankdeck.window.runs.view
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_F2)
    editor = view.findChildren(QLineEdit)[-1]
    qtbot.keyClicks(editor, "the good one")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: labels(rankdeck) == ["a", "the good one", "c"], timeout=SOON_MS)
    assert read_notes(three[1]).name == "the good one"
    assert main(["rename", "the good one", "a better one", "--runs-dir", str(runs_dir)]) == 0
    qtbot.waitUntil(lambda: labels(rankdeck)[1] == "a better one", timeout=SOON_MS)
    rankdeck.window.runs.edits.edit_name(three[2])
    answer(rankdeck, "")
    qtbot.waitUntil(lambda: not rankdeck.runner._open, timeout=SOON_MS)
    assert labels(rankdeck)[2] == "c" and not (three[2] / NOTES).exists(), "it had no name of its own"


def test_tags_note_and_pin_of_several(open_window: OpenWindow, qtbot: QtBot, three: list[Path]) -> None:
    write_notes(three[0], RunNotes(tags=("night",)))
    rankdeck = opened(open_window, qtbot, three[0])
    panel = rankdeck.window.runs
    panel.view.choose(three[:2])
    panel.edits.edit_tags(panel.view.chosen_rows())
    answer(rankdeck, "two:words")
    qtbot.waitUntil(lambda: "is not a tag" in panel.notice.text, timeout=SOON_MS)
    panel.edits.edit_tags(panel.view.chosen_rows())
    assert "in use: night" in answer(rankdeck, "Draft, old").labelText()
    qtbot.waitUntil(lambda: read_notes(three[1]).tags == ("draft", "old"), timeout=SOON_MS)
    assert read_notes(three[0]).tags == ("draft", "night", "old"), "what not all of them have stays"
    qtbot.waitUntil(lambda: panel.view.chosen_rows()[1].record.notes.tags == ("draft", "old"), timeout=SOON_MS)
    panel.edits.edit_tags(panel.view.chosen_rows())
    answer(rankdeck, "draft")
    qtbot.waitUntil(lambda: read_notes(three[0]).tags == ("draft", "night"), timeout=SOON_MS)
    panel.edits.edit_note(panel.view.chosen_rows()[0])
    answer(rankdeck, "Half the rate\nTwice as long")
    qtbot.waitUntil(lambda: read_notes(three[0]).note == "Half the rate\nTwice as long", timeout=SOON_MS)
    panel.edits.pin([three[2]], True)
    qtbot.waitUntil(lambda: labels(rankdeck) == ["c", "a", "b"], timeout=SOON_MS)
    assert rankdeck.showing.run_dir == three[0]


@LINUX
def test_removed_runs_are_in_the_recycle_bin(
    open_window: OpenWindow, qtbot: QtBot, three: list[Path], recycle_bin: Path
) -> None:
    rankdeck = opened(open_window, qtbot, three[1])
    panel = rankdeck.window.runs
    panel.view.setFocus()
    qtbot.keyClick(panel.view, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: labels(rankdeck) == ["a", "c"], timeout=SOON_MS)
    assert rankdeck.showing.run_dir == three[2], "the next one is shown"
    qtbot.waitUntil(lambda: panel.notice.title == "“b” was removed", timeout=SOON_MS)
    assert (recycle_bin / "files" / "b").is_dir()
    panel.removal_requested.emit([three[0], three[2]])
    qtbot.waitUntil(lambda: panel.notice.title == "2 runs were removed", timeout=SOON_MS)
    assert rankdeck.showing.run_dir is None and rankdeck.window.welcome.isVisible()


@LINUX
def test_what_no_bin_takes_is_deleted_only_after_a_question(
    open_window: OpenWindow, qtbot: QtBot, three: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a file"))
    rankdeck = opened(open_window, qtbot, three[1])
    panel = rankdeck.window.runs
    panel.removal_requested.emit(three[1:])
    qtbot.waitUntil(lambda: panel.notice.title == "The recycle bin does not take the run", timeout=SOON_MS)
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir == three[1], timeout=SOON_MS)
    panel.notice.button.click()
    question = rankdeck.removal.question
    assert question is not None and question.text() == "Delete 2 runs for good?"
    next(button for button in question.buttons() if "for good" in button.text()).click()
    qtbot.waitUntil(lambda: labels(rankdeck) == ["a"], timeout=SOON_MS)
    assert not three[1].exists() and not three[2].exists()


def test_a_run_that_has_started_meanwhile_stays(open_window: OpenWindow, qtbot: QtBot, three: list[Path]) -> None:
    rankdeck = opened(open_window, qtbot, three[1])
    panel = rankdeck.window.runs
    write_lines(three[1], Shape(steps=20), created=START_S, state="training", host=own())
    panel.removal_requested.emit(three[1:])
    qtbot.waitUntil(lambda: "cannot be removed" in panel.notice.title, timeout=SOON_MS)
    assert all(path.is_dir() for path in three)
    assert rankdeck.showing.run_dir == three[1]
    write_lines(three[1], Shape(steps=20), created=START_S)


def test_a_run_that_is_removed_elsewhere_is_not_shown(
    open_window: OpenWindow, qtbot: QtBot, three: list[Path], runs_dir: Path
) -> None:
    rankdeck = opened(open_window, qtbot, three[1])
    assert main(["rm", "b", "--permanently", "--runs-dir", str(runs_dir)]) == 0
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir is None, timeout=SOON_MS)
    assert labels(rankdeck) == ["a", "c"] and rankdeck.window.welcome.isVisible()
    assert rankdeck.window.runs.notice.title == "“b” was moved or deleted elsewhere"


def test_damaged_notes_are_not_overwritten(open_window: OpenWindow, qtbot: QtBot, three: list[Path]) -> None:
    (three[0] / NOTES).write_bytes(b"\xff\x00garbage")
    rankdeck = opened(open_window, qtbot, three[0])
    panel = rankdeck.window.runs
    panel.edits.edit_name(three[0])
    answer(rankdeck, "x")
    qtbot.waitUntil(lambda: bool(panel.notice.title), timeout=SOON_MS)
    assert NOTES in panel.notice.text and (three[0] / NOTES).read_bytes() == b"\xff\x00garbage"


def test_settings_are_copied_to_new_run(open_window: OpenWindow, qtbot: QtBot, three: list[Path]) -> None:
    rankdeck = opened(open_window, qtbot, three[0])
    store = RunStore(three[2])
    write_atomic(store.run_toml, to_toml(store.config().replace(steps=77, lr=0.25)))
    rows = rankdeck.window.new_run.form.rows
    rows["steps"].editor.setText("7")
    rankdeck.window.runs.settings_copy_requested.emit(three[2])
    qtbot.waitUntil(lambda: (rows["steps"].text(), rows["lr"].text()) == ("77", "0.25"), timeout=SOON_MS)


def test_settings_of_a_received_run_are_asked_about(
    open_window: OpenWindow, qtbot: QtBot, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck = opened(open_window, qtbot, three[0])
    store = RunStore(three[2])
    write_atomic(store.run_toml, to_toml(store.config().replace(env={"LD_PRELOAD": "/evil.so"})))
    asked: list[str] = []
    monkeypatch.setattr(QMessageBox, "open", lambda box: asked.append(box.informativeText()))
    copied: list[object] = []
    monkeypatch.setattr(rankdeck.window.new_run, "copy_run", lambda *given: copied.append(given))
    rankdeck.window.runs.settings_copy_requested.emit(three[2])
    qtbot.waitUntil(lambda: bool(asked or copied), timeout=SOON_MS)
    assert "LD_PRELOAD=/evil.so" in asked[0] and not copied, "New run would preview with it"
