"""Settings, About and Help, opened from the window's actions."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.preferences import preferences_controller
from app.preferences.about_dialog import AboutDialog
from app.preferences.settings_dialog import SettingsDialog
from app.style.theme import Theme
from app.style.tones import is_dark
from core import paths
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, shut

pytestmark = OFFSCREEN_NOISE


def test_settings_are_kept(open_window: OpenWindow, qapp: QApplication) -> None:
    before = QPalette(qapp.palette())
    theme = Theme(qapp)
    rankdeck = open_window()
    window = rankdeck.window
    window.actions_.settings.trigger()
    dialog = window.findChild(SettingsDialog)
    assert dialog is not None and dialog.isVisible()
    dialog.themes["dark"].click()
    assert is_dark(qapp.palette())
    dialog.switches["notifications"].click()
    dialog.close()
    shut(rankdeck)
    again = open_window()
    assert again.settings.text("theme") == "dark" and not again.settings.flag("notifications", True)
    theme.choose("light")
    assert not is_dark(qapp.palette())
    qapp.setPalette(before)
    theme.deleteLater()


def test_help_opens_the_documentation_in_the_browser(
    open_window: OpenWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(Path(url.toLocalFile())) or True)
    monkeypatch.setattr(preferences_controller, "data_folder", lambda: tmp_path)
    window = open_window().window
    window.actions_.help.trigger()
    qtbot.waitUntil(lambda: len(opened) == 1, timeout=30_000)
    assert opened[0] == tmp_path / "documentation" / "getting-started.html" and opened[0].is_file()
    window.actions_.about.trigger()
    about = window.findChild(AboutDialog)
    assert about is not None and about.isVisible()
    about.close()


def test_folders_are_kept_whole_or_as_they_were(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    window = open_window().window
    monkeypatch.delenv("RANKDECK_HOME")
    monkeypatch.setattr(paths, "data_folder", lambda: tmp_path / "own")
    window.actions_.settings.trigger()
    dialog = window.findChild(SettingsDialog)
    assert dialog is not None
    dialog.runs.chosen.emit(tmp_path / "Läufe")
    kept = paths.runs_dir_file()
    before = kept.stat().st_ino
    assert paths.default_runs_dir() == tmp_path / "Läufe" and list(kept.parent.iterdir()) == [kept]
    dialog.runs.chosen.emit(tmp_path / "other")
    assert kept.stat().st_ino != before, "another file took its place: no reader sees a part of one"
    kept.unlink()
    kept.mkdir()
    dialog.runs.chosen.emit(tmp_path / "other")
    assert window.notice.isVisible() and "RANKDECK_HOME" in window.notice.text
    dialog.models.chosen.emit(tmp_path / "Modelle")
    assert paths.read_folder(paths.models_dir_file()) == tmp_path / "Modelle"
    dialog.close()
