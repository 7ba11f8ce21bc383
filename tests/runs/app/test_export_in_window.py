"""Exporting the shown run from the window: in the background, and it says where the file is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from core.export import KINDS
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run
from tests.helpers.synthetic_run import write_events
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000


@pytest.fixture
def store(tmp_path: Path, runs_dir: Path) -> RunStore:
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, runs_dir=runs_dir)
    return write_events(store, ({"ts": 1.0, "event": "step", "rank": 0, "step": n, "loss": 2.0} for n in (1, 2)))


def test_the_shown_run_is_exported(open_window: OpenWindow, store: RunStore, qtbot: QtBot) -> None:
    rankdeck = open_window()
    window = rankdeck.window
    assert not window.actions_.exports["csv"].isEnabled(), "no run is shown"
    rankdeck.showing.show(store.dir)
    qtbot.waitUntil(lambda: window.actions_.exports["csv"].isEnabled(), timeout=SOON_MS)
    window.actions_.exports["csv"].trigger()
    assert window.notice.title == f"Exporting {store.dir.name}"
    qtbot.waitUntil(lambda: window.notice.title.startswith("Exported"), timeout=SOON_MS)
    assert str(store.dir / "exports" / "csv") in window.notice.text and "steps.csv: 2 rows" in window.notice.text
    assert (store.dir / "exports" / "csv" / "steps.csv").is_file()
    window.actions_.exports["safetensors"].trigger()
    qtbot.waitUntil(lambda: "model.safetensors" in window.notice.text, timeout=SOON_MS)
    hf = window.actions_.exports["hf"]
    assert not hf.isEnabled() and "MiniGPT cannot be exported as a Hugging Face folder" in hf.toolTip()


# The offscreen platform has no menus of its own to raise.
@pytest.mark.qt_log_ignore("This plugin does not support (raise|grabbing)", extend=True)
def test_the_menu_of_a_run_in_the_list(open_window: OpenWindow, store: RunStore, qtbot: QtBot) -> None:
    rankdeck = open_window()
    runs = rankdeck.window.runs
    qtbot.waitUntil(lambda: not runs.page.is_empty, timeout=SOON_MS)
    runs.view.customContextMenuRequested.emit(runs.view.visualRect(runs.view.model().index(0, 0)).center())
    assert rankdeck.showing.run_dir == store.dir
    menu = runs.menu
    assert menu is not None and menu.isVisible()
    (export,) = [action.menu() for action in menu.actions() if action.menu() is not None]
    assert [action.text() for action in export.actions()] == [
        a.text() for a in rankdeck.window.actions_.exports.values()
    ]
    qtbot.waitUntil(lambda: rankdeck.window.actions_.exports["csv"].isEnabled(), timeout=SOON_MS)
    export.actions()[list(KINDS).index("csv")].trigger()
    menu.close()
    qtbot.waitUntil(lambda: rankdeck.window.notice.title.startswith("Exported"), timeout=SOON_MS)
    runs.view.customContextMenuRequested.emit(runs.view.viewport().rect().bottomLeft())
    assert runs.menu is menu, "no run, no menu"
