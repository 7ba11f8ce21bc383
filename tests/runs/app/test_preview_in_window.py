"""The data as the model will see it, from the window: made by the real process, changeable, cancelled."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.new_run.preview_dialog import PreviewDialog
from core.measure.preview_text import data_text
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000
LOOK_MS = 60_000
LEFT = Qt.MouseButton.LeftButton


RECIPE = """
format = "rankdeck-recipe"
version = 1
name = "light"
title = "Light"
[defaults]
steps = 10
batch_size = 4
seq_len = 64
[[fields]]
name = "text_column"
label = "Text column"
type = "str"
default = ""
[[fields]]
name = "allow_download"
label = "Allow downloads"
type = "bool"
default = false
[[fields]]
name = "val_fraction"
label = "Held out"
type = "float"
default = 0.1
"""


@pytest.fixture
def light(runs_dir: Path) -> None:
    """A recipe that takes bytes for tokens and loads nothing large."""
    folder = runs_dir / "recipes" / "light"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8", newline="\n")
    (folder / "train.py").write_text("def main(run):\n    pass\n", encoding="utf-8", newline="\n")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Sixty rows with two columns of text, one of them the likelier; two rows are bad."""
    path = tmp_path / "Daten mit Raum" / "rows.jsonl"
    path.parent.mkdir()
    made = [{"title": f"Nr {n}", "review": f"Größe {n} is\na rather long text about things. " * 3} for n in range(60)]
    lines = [json.dumps(row, ensure_ascii=False) for row in made] + ["{broken", json.dumps({"title": "no text"})]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return path


def open_preview(rankdeck: Rankdeck, qtbot: QtBot) -> PreviewDialog:
    qtbot.waitUntil(rankdeck.window.new_run.data.preview.isEnabled, timeout=SOON_MS)
    qtbot.mouseClick(rankdeck.window.new_run.data.preview, LEFT)
    dialog = rankdeck.new_run.previewing.dialog
    assert dialog is not None and dialog.isVisible()
    return dialog


def set_data(rankdeck: Rankdeck, text: str, qtbot: QtBot) -> None:
    line = rankdeck.window.new_run.data.line
    line.clear()
    qtbot.keyClicks(line, text)


@pytest.mark.usefixtures("light")
def test_the_preview_shows_what_the_model_will_see(open_sheet: OpenWindow, rows: Path, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    rankdeck.window.new_run.what.choose("light")
    set_data(rankdeck, str(rows), qtbot)
    dialog = open_preview(rankdeck, qtbot)
    assert dialog.is_busy
    qtbot.waitUntil(lambda: not dialog.is_busy, timeout=LOOK_MS)
    assert dialog.notice.isHidden(), dialog.notice.text
    text = dialog.text.toPlainText()
    assert "1 file, " in text and "62 rows, 60 documents" in text
    assert "2 of 62 rows are bad" in text and "rows.jsonl, line 61" in text
    recommended = "parallel-independent on" if sys.platform == "win32" else "DDP on"
    assert f"{recommended} 2 devices" in text and "64 tokens" in text
    assert "Sample 0 (64 tokens)" in text and "Document 1: " in text and "cut into" in text and "is↵a rather" in text
    dialog.reject()
    assert rankdeck.new_run.previewing.dialog is None

    rankdeck.window.new_run.set_field("text_column", "title")
    dialog = open_preview(rankdeck, qtbot)
    qtbot.waitUntil(lambda: not dialog.is_busy, timeout=LOOK_MS)
    assert "Nr 0" in dialog.text.toPlainText() and "Größe" not in dialog.text.toPlainText()
    dialog.reject()


@pytest.mark.usefixtures("light")
def test_a_column_that_is_not_there_is_marked_before_a_start(open_sheet: OpenWindow, rows: Path, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    rankdeck.window.new_run.what.choose("light")
    set_data(rankdeck, str(rows), qtbot)
    rankdeck.window.new_run.set_field("text_column", "body")
    start, row = rankdeck.window.actions_.start, rankdeck.window.new_run.form.rows["text_column"]
    qtbot.waitUntil(lambda: not row.problem.isHidden(), timeout=LOOK_MS)
    assert "'body'" in row.problem.text() and "review" in row.problem.text() and not start.isEnabled()
    assert rankdeck.window.new_run.data.preview.isEnabled(), "a look at the data helps with it"
    rankdeck.window.new_run.set_field("text_column", "review")
    qtbot.waitUntil(lambda: row.problem.isHidden() and start.isEnabled(), timeout=LOOK_MS)


def test_closing_the_preview_ends_the_look(open_sheet: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_sheet()
    dialog = open_preview(rankdeck, qtbot)
    assert rankdeck.new_run.previewing.is_open
    dialog.reject()
    assert not rankdeck.new_run.previewing.is_open


def test_data_of_the_hub_is_not_counted_in_files(
    open_sheet: OpenWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "datasets.py").write_text("", encoding="utf-8")  # the package need not be there; nothing imports it
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rankdeck = open_sheet()
    set_data(rankdeck, "hf://owner/name", qtbot)
    found = "on the Hugging Face Hub, not downloaded yet"
    qtbot.waitUntil(lambda: rankdeck.window.new_run.data.found.text() == found, timeout=SOON_MS)
    assert "epoch" not in rankdeck.window.new_run.summary.facts.full_text, "how many steps it has is not known"
    assert data_text("hf://owner/name:en", 0, 2_500_000) == "on the Hugging Face Hub, 2.5 MB on this machine"
    assert (
        data_text("a.txt", 1, 999) == "1 file, 999 bytes" and data_text("a", 1200, 512_300_000) == "1,200 files, 512 MB"
    )
