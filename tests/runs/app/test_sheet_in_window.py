"""New run in the window: all that is wrong is marked before Start, with its remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
from pytestqt.qtbot import QtBot

from app.new_run.memory_strip import FitQuestion
from app.window.main_window import MainWindow
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS: Final = 20_000


def set_data(window: MainWindow, path: Path) -> None:
    window.new_run.data.set_path(str(path))
    window.new_run.data.edited.emit()


def problem(window: MainWindow, name: str) -> str:
    label = window.new_run.form.rows[name].problem
    return "" if label.isHidden() else label.text()


def test_all_that_is_wrong_is_marked_at_once_before_start(open_sheet: OpenWindow, qtbot: QtBot, tmp_path: Path) -> None:
    rankdeck = open_sheet()
    window, start = rankdeck.window, rankdeck.window.actions_.start
    window.new_run.mode.radios["ddp"].click()  # Windows' own choice trains each device by itself
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    set_data(window, empty)
    type_into(rankdeck, "n_head", "3", qtbot)
    type_into(rankdeck, "lr", "fast", qtbot)
    type_into(rankdeck, "global_batch_size", "7", qtbot)
    data = window.new_run.data
    width = "✕ Width must be divisible by heads (128 ÷ 3). Try 129, or 4 heads."
    qtbot.waitUntil(lambda: problem(window, "n_embd") == width, timeout=SOON_MS)
    qtbot.waitUntil(lambda: "is empty" in data.problem.text(), timeout=SOON_MS)
    qtbot.waitUntil(lambda: "cannot be divided evenly" in problem(window, "global_batch_size"), timeout=SOON_MS)
    assert "not a number" in problem(window, "lr")
    assert window.new_run.summary.fix.text() == "✕ Fix 4 settings to start" and not start.isEnabled()
    window.new_run.summary.fix.click()
    qtbot.waitUntil(lambda: window.focusWidget() is data.line)

    binary = tmp_path / "model.bin.txt"
    binary.write_bytes(b"\x7fELF\0\0\0")
    set_data(window, binary)
    qtbot.waitUntil(lambda: "is a binary file" in data.problem.text(), timeout=SOON_MS)
    set_data(window, Path(__file__))
    for name, text in (("n_head", "4"), ("lr", "1e-3"), ("global_batch_size", "16")):
        type_into(rankdeck, name, text, qtbot)
    qtbot.waitUntil(start.isEnabled, timeout=SOON_MS)
    assert data.problem.isHidden() and problem(window, "n_embd") == "" and window.new_run.summary.fix.isHidden()


@pytest.mark.skipif(sys.platform == "win32", reason="the recipe's packages are not part of the suite there")
def test_a_model_that_is_not_here_is_one_message_with_two_buttons(
    open_sheet: OpenWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    rankdeck = open_sheet()
    sheet = rankdeck.window.new_run
    sheet.what.choose("hf_causal_lm")
    type_into(rankdeck, "model", "owner/name", qtbot)
    qtbot.waitUntil(lambda: "not on this machine" in problem(rankdeck.window, "model"), timeout=SOON_MS)
    row = sheet.form.rows["model"]
    assert [button.text() for button in row.remedies.buttons] == ["Allow the download", "Choose a folder…"]
    assert "--" not in row.problem.text() and "allow_download" not in row.problem.text()
    assert sheet.notice.isHidden() and list(rankdeck.drafting.latest.problems) == ["model"]  # type: ignore[union-attr]
    assert not sheet.form.rows["n_layer"].editor.isEnabled(), "the model brings its own"
    row.remedies.buttons[0].click()
    qtbot.waitUntil(rankdeck.window.actions_.start.isEnabled, timeout=SOON_MS)
    assert sheet.draft().fields["allow_download"] == "true" and problem(rankdeck.window, "model") == ""
    qtbot.waitUntil(lambda: "will be downloaded" in sheet.summary.notes.text(), timeout=SOON_MS)


def test_a_sheet_out_of_sight_starts_no_checks(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    type_into(rankdeck, "n_head", "3", qtbot)
    qtbot.wait(600)
    assert problem(rankdeck.window, "n_embd") == "" and not rankdeck.drafting.recipe_check.is_asking
    rankdeck.window.actions_.new_run.setChecked(True)
    qtbot.waitUntil(lambda: "divisible" in problem(rankdeck.window, "n_embd"), timeout=SOON_MS)


def test_a_run_that_cannot_fit_says_so_at_once_and_asks(
    open_sheet: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck = open_sheet()
    started: list[object] = []
    monkeypatch.setattr(rankdeck.launching, "start", lambda run, _name: started.append(run))
    sheet, window = rankdeck.window.new_run, rankdeck.window
    height = sheet.summary.height()
    sheet.devices.select(["cpu:0"])
    for name, text in (("n_layer", "128"), ("n_head", "128"), ("n_embd", "16384")):
        sheet.set_field(name, text)
    strip = sheet.summary.memory
    assert strip.verdict.text() == "Does not fit" and strip.figure.full_text.startswith("needs 6.6 TB, ")
    assert sheet.summary.facts.full_text.startswith("412 B parameters") and sheet.summary.height() == height
    memory = rankdeck.drafting.memory
    qtbot.waitUntil(lambda: not memory.is_measuring, timeout=SOON_MS)  # no process tries to build it
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)
    window.actions_.start.trigger()
    question = window.findChild(FitQuestion)
    assert question is not None and started == []
    question.cancel.click()
    window.actions_.start.trigger()
    qtbot.waitUntil(lambda: len(window.findChildren(FitQuestion)) == 1)
    window.findChildren(FitQuestion)[0].start.click()
    assert len(started) == 1
    foot, facts = sheet.summary, sheet.summary.facts
    rankdeck.window.new_run.what.choose("script")
    assert "parameters" not in facts.full_text and foot.memory.detail.full_text == "Only the script knows its model."
