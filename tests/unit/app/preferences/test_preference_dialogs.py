"""Settings, About and the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QPushButton
from pytestqt.qtbot import QtBot

from app.preferences import about_dialog
from app.preferences.settings_dialog import FolderRow, KeptFolder, SettingsDialog
from app.settings import NOTIFICATIONS, TRAY_ICON
from core import __version__
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_each_setting_tells_what_was_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    runs, models = (KeptFolder(title, tmp_path / title, "") for title in ("Runs", "Models"))
    dialog = SettingsDialog("light", runs, models, [NOTIFICATIONS], "")
    qtbot.addWidget(dialog)
    dialog.show()
    assert [name for name, radio in dialog.themes.items() if radio.isChecked()] == ["light"]
    with qtbot.waitSignal(dialog.theme_chosen) as theme:
        dialog.themes["dark"].click()
    assert theme.args == ["dark"]
    with qtbot.waitSignal(dialog.switched) as notifies:
        qtbot.keyClick(dialog.switches[NOTIFICATIONS], Qt.Key.Key_Space)
    assert notifies.args == [NOTIFICATIONS, True]
    with qtbot.waitSignal(dialog.switched) as switched:
        dialog.switches[TRAY_ICON].click()
    assert switched.args == [TRAY_ICON, False]
    with qtbot.waitSignal(dialog.updates_chosen) as address:
        qtbot.keyClicks(dialog.updates, "https://x")
        qtbot.keyClick(dialog.updates, Qt.Key.Key_Return)
    assert address.args == ["https://x"]
    buttons = dialog.findChildren(QAbstractButton)
    assert all(button.text() or button.accessibleName() for button in buttons)
    assert not any(button.isDefault() for button in dialog.findChildren(QPushButton))


def test_another_folder_is_used_at_once_or_from_the_next_start(qtbot: QtBot, tmp_path: Path) -> None:
    now, other = tmp_path / "now", tmp_path / "other"
    waits = FolderRow(KeptFolder("Runs", now, "A note."), waits=True)
    at_once = FolderRow(KeptFolder("Models", now, "A note."))
    before = FolderRow(KeptFolder("Runs", now, "", coming=other), waits=True)
    fixed = FolderRow(KeptFolder("Models", now, "", fixed_by="HF_HOME"))
    for row in (waits, at_once, before, fixed):
        qtbot.addWidget(row)
    for row in (waits, at_once):
        assert row.path.text() == str(now) and row.note.text() == "A note."
        with qtbot.waitSignal(row.chosen) as chosen:
            row.choose(other)
        assert chosen.args == [other] and row.path.text() == str(other)
    assert waits.note.text() == before.note.text() and waits.note.text().startswith("Used from the next start")
    assert at_once.note.text() == "A note."
    assert not fixed.change.isEnabled() and "HF_HOME" in fixed.note.text()


def test_what_is_installed_is_named_with_licence_and_link(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about_dialog, "installed_version", lambda name, *_: {"torch": "2.13.0"}.get(name))
    dialog = about_dialog.AboutDialog()
    qtbot.addWidget(dialog)
    dialog.show()
    text = dialog.text()
    assert f"Rankdeck {__version__}" in text and "Apache&nbsp;License&nbsp;2.0" in text
    assert 'href="https://pytorch.org"' in text and "2.13.0" in text and "DeepSpeed" not in text
