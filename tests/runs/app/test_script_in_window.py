"""A script of one's own, from the window: chosen with the button, checked in its fields, run, charted as one says."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFileDialog
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.new_run.charts_dialog import ChartsDialog
from app.new_run.script_rows import InterpreterRow
from core.run_folder.store import RunStore
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000
RUN_MS = 60_000
LEFT = Qt.MouseButton.LeftButton
SCRIPT = """
import sys
for step in range(1, 6):
    print(f"step {step}: train_loss {5 / step:.3f}, my_score {step / 5:.2f}", flush=True)
print("arguments", sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "mein Skript" / "train me.py"
    path.parent.mkdir()
    path.write_text(SCRIPT, encoding="utf-8", newline="\n")
    return path


def pick(name: str, path: Path, rankdeck: Rankdeck, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Presses the button beside a field; the dialog that comes up gives `path`."""
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    press(name, rankdeck, qtbot)


def press(name: str, rankdeck: Rankdeck, qtbot: QtBot) -> None:
    button = rankdeck.window.new_run.form.rows[name].browse
    assert button is not None
    qtbot.mouseClick(button, LEFT)


def prepare(script: Path, rankdeck: Rankdeck, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chooses the script and one CPU device."""
    sheet = rankdeck.window.new_run
    sheet.what.choose("script")
    pick("script", script, rankdeck, qtbot, monkeypatch)
    sheet.devices.select([device.uuid for device in rankdeck.table.devices if device.kind == "cpu"][:1])


def charts(rankdeck: Rankdeck, qtbot: QtBot) -> ChartsDialog:
    press("charts", rankdeck, qtbot)
    dialog = rankdeck.window.new_run.findChild(ChartsDialog)
    assert dialog is not None and dialog.isVisible()
    return dialog


def test_pythons_are_offered_and_another_can_be_chosen(
    open_sheet: OpenWindow, script: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(script.parent / ".venv", with_pip=False)
    rankdeck = open_sheet()
    rankdeck.window.new_run.what.choose("script")
    row, starts = rankdeck.window.new_run.form.rows["python"], Qt.MatchFlag.MatchStartsWith
    assert isinstance(row, InterpreterRow)
    combo = row.editor
    assert isinstance(combo, QComboBox)
    pick("script", script, rankdeck, qtbot, monkeypatch)
    numbers = ".".join(map(str, sys.version_info[:2]))
    ours = f"mein Skript/.venv: Python {numbers}"
    qtbot.waitUntil(lambda: combo.findText(ours, starts) >= 0, timeout=SOON_MS)
    assert "torch" in combo.itemText(combo.findText("Rankdeck's own: Python", starts))
    combo.setFocus()
    combo.activated.emit(combo.findText(ours, starts))
    chosen = rankdeck.window.new_run.draft().fields["python"]
    assert Path(chosen).parent.parent == script.parent / ".venv" and row.editor.toolTip().startswith(ours)
    row.line.clear()
    qtbot.keyClicks(row.line, "no/such/python")
    qtbot.waitUntil(lambda: "There is no interpreter" in row.problem.text(), timeout=SOON_MS)
    pick("python", Path(chosen), rankdeck, qtbot, monkeypatch)
    qtbot.waitUntil(lambda: row.problem.text() == "", timeout=SOON_MS)
    assert row.text() == chosen and row.editor.isVisible()


@pytest.mark.slow
def test_a_script_of_which_nothing_is_charted_shows_its_names_and_numbers(
    open_sheet: OpenWindow, script: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.write_text("for i in range(60): print(f'round {i} criterion: {i / 8}')\n", encoding="utf-8", newline="\n")
    rankdeck = open_sheet()
    window, sheet = rankdeck.window, rankdeck.window.new_run
    prepare(script, rankdeck, qtbot, monkeypatch)
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)
    window.actions_.start.trigger()
    qtbot.waitUntil(lambda: (s := rankdeck.data.state) is not None and s.state == "finished", timeout=RUN_MS)
    alerts = window.tabs.alerts.table
    qtbot.waitUntil(lambda: alerts.rowCount() == 1, timeout=SOON_MS)
    item = alerts.item(0, 3)
    assert item is not None and "To chart them, open Charts in New run." in item.text() and "--map" not in item.text()
    assert not window.header.steps.isVisible(), "never step 0"
    dialog = charts(rankdeck, qtbot)
    assert not dialog.table.isColumnHidden(1)
    numbers = dialog.table.item(row_of(dialog, "criterion"), 1)
    assert numbers is not None and numbers.text() == "7.25, 7.375"
    dialog.choose(row_of(dialog, "criterion"), "loss")
    dialog.choose(row_of(dialog, "round"), "step")
    qtbot.mouseClick(dialog.use, LEFT)
    assert sheet.draft().fields["charts"] == "criterion=loss, round=step"


def row_of(dialog: ChartsDialog, printed: str) -> int:
    """The row of a printed name."""
    (found,) = dialog.table.findItems(printed, Qt.MatchFlag.MatchExactly)
    return found.row()


def test_it_runs_and_its_names_are_charted_as_one_says(
    open_sheet: OpenWindow, script: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck = open_sheet()
    window, sheet = rankdeck.window, rankdeck.window.new_run
    prepare(script, rankdeck, qtbot, monkeypatch)

    def run() -> RunStore:
        before = rankdeck.showing.run_dir
        qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)
        window.actions_.start.trigger()
        qtbot.waitUntil(lambda: rankdeck.showing.run_dir not in (None, before), timeout=RUN_MS)
        qtbot.waitUntil(lambda: (s := rankdeck.data.state) is not None and s.state == "finished", timeout=RUN_MS)
        assert rankdeck.showing.run_dir is not None
        return RunStore.open(rankdeck.showing.run_dir)

    run()
    cards = window.plots.cards
    qtbot.waitUntil(lambda: "my_score" in cards.shown, timeout=SOON_MS)
    dialog = charts(rankdeck, qtbot)
    assert dialog.combo(row_of(dialog, "train_loss")).itemText(0) == "as printed (loss)"
    dialog.choose(row_of(dialog, "my_score"), "accuracy")
    dialog.choose(row_of(dialog, "train_loss"), "-")
    qtbot.mouseClick(dialog.use, LEFT)
    assert sheet.draft().fields["charts"] == "train_loss=-, my_score=accuracy"

    store = run()
    assert store.config().options["charts"] == "train_loss=-, my_score=accuracy", "it is kept with the run"
    assert store.config().options["script"] == str(script)
    qtbot.waitUntil(lambda: "accuracy" in cards.shown, timeout=SOON_MS)
    assert "loss" not in rankdeck.data.series.rank(0).columns and not {"my_score", "loss"} & set(cards.shown)
    assert cards.frame("accuracy").chart.accessibleName() == "Accuracy plot"
