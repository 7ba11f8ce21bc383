"""AI-OS's `chunk_tracker_state.json` opened in the window: what will happen, then that it does; or why it cannot."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.launch.resume_dialog import ResumeDialog
from app.main import Rankdeck
from core.run_folder.store import RunStore
from tests.helpers.made_runs import CHUNK, TEXT, aios_file, tree
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.usefixtures("quick_hosts")]
PLAN_MS = 10_000
TRAIN_MS = 120_000
DONE = {(0, 0, chunk) for chunk in range(3)}


def current_form(place: Path) -> Path:
    """In the folder that AI-OS makes, whose name says the chunk size."""
    return aios_file(place / "datasets" / f"text_cs{CHUNK}")


def older_form(place: Path) -> Path:
    """As versions before wrote it: other keys, and no folder that says the chunk size."""
    keys = ("block_id", "chunk_id", "gpu_id", "step", "samples_trained")
    chunks = [dict(zip(keys, (0, number, 0, number, CHUNK), strict=True)) for number in range(3)]
    document = {"completed_chunks": chunks, "current_epoch": 0, "blocks_this_epoch": [], "total_steps": 3 * CHUNK}
    path = place / "old save" / "chunk_tracker_state.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def opened(rankdeck: Rankdeck, path: Path) -> ResumeDialog:
    """The Resume dialog with this file named in it."""
    rankdeck.window.actions_.resume.trigger()
    dialog = rankdeck.resuming.dialog
    assert dialog is not None and dialog.isVisible()
    dialog.choose(str(path))
    return dialog


def typed(field: Any, text: str) -> None:
    """As typed; qtbot knows no letters outside ASCII."""
    field.setText(text)
    field.textEdited.emit(text)


def planned(dialog: ResumeDialog, place: Path, qtbot: QtBot) -> None:
    """Says where the dataset lies, and the chunk size where it is asked for, until the plan stands there."""
    qtbot.waitUntil(lambda: dialog.notice.title == "The dataset's path is unknown", timeout=PLAN_MS)
    assert "Choose the dataset." in dialog.notice.text
    assert not dialog.go.isEnabled() and dialog.message.toPlainText() == "Nothing was changed."
    typed(dialog.form.data, str(place / "text.txt"))
    qtbot.waitUntil(lambda: dialog.go.isEnabled() or dialog.form.chunk_size.isVisible(), timeout=PLAN_MS)
    if dialog.form.chunk_size.isVisible():
        assert "25 chunks of 4000 samples" in dialog.notice.text and "the chunk size" in dialog.notice.text
        typed(dialog.form.chunk_size, str(CHUNK))
    qtbot.waitUntil(
        lambda: dialog.go.isEnabled() and "samples are trained" in dialog.message.toPlainText(), timeout=PLAN_MS
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "AI-OS sävings"
    folder.mkdir()
    (folder / "text.txt").write_bytes(TEXT)
    return folder


@pytest.mark.windows
@pytest.mark.parametrize("form", [current_form, older_form])
def test_what_will_happen_is_shown_before(
    form: Callable[[Path], Path], place: Path, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    path = form(place)
    before = tree(place)
    dialog = opened(open_window(), path)
    planned(dialog, place, qtbot)
    words = dialog.message.toPlainText()
    for part in (
        f"A new run continues from {path}.",
        "starts with fresh ones",
        "Data: epoch 1 of 1; ",
        "Devices: ",
        f"Nothing in {path.parent} is changed.",
    ):
        assert part in words, words
    assert dialog.form.chunk_size.isVisible() == (form is older_form)
    dialog.reject()
    assert tree(place) == before and not list(runs_dir.iterdir())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="trains for real, and there is no torch")
@pytest.mark.parametrize("form", [current_form, older_form])
def test_it_goes_on_from_there(
    form: Callable[[Path], Path], place: Path, open_window: OpenWindow, qtbot: QtBot
) -> None:
    path = form(place)
    before = tree(place)
    rankdeck = open_window()
    dialog = opened(rankdeck, path)
    planned(dialog, place, qtbot)
    typed(dialog.form.steps, "14")
    qtbot.waitUntil(lambda: dialog.go.isEnabled() and "step 14" in dialog.message.toPlainText(), timeout=PLAN_MS)
    dialog.go.click()
    qtbot.waitUntil(lambda: rankdeck.window.header.state.text() == "Finished", timeout=TRAIN_MS)
    assert rankdeck.resuming.dialog is None and rankdeck.showing.run_dir is not None
    store = RunStore.open(rankdeck.showing.run_dir)
    lines = [json.loads(line) for line in store.metrics.read_text(encoding="utf-8").splitlines()]
    trained = {(line["epoch"], line["block_id"], line["chunk_id"]) for line in lines if line["event"] == "step"}
    assert trained and not trained & DONE, "what was done there is not trained again"
    ledger = json.loads(store.ledger.read_text(encoding="utf-8"))
    done = {(chunk["epoch"], chunk["block_id"], chunk["chunk_id"]) for chunk in ledger["completed_chunks"]}
    assert done > DONE and ledger["chunk_size"] == CHUNK
    assert tree(place) == before


@pytest.mark.windows
def test_what_cannot_be_read_says_so_and_nothing_changes(
    place: Path, open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    path = current_form(place)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = tree(place)
    dialog = opened(open_window(), path)
    qtbot.waitUntil(lambda: bool(dialog.notice.title), timeout=PLAN_MS)
    assert dialog.notice.isVisible() and "cannot be used" in dialog.notice.title, dialog.notice.title
    assert "chunk_tracker_state.json" in dialog.notice.text
    assert not dialog.go.isEnabled() and dialog.message.toPlainText() == "Nothing was changed."
    assert tree(place) == before and not list(runs_dir.iterdir())
