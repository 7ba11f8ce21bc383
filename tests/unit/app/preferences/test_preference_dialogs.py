"""Settings, About and the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.preferences.about_dialog import AboutDialog
from app.preferences.folder_row import KeptFolder
from app.preferences.settings_dialog import PRICES_NOTE, Preferred, SettingsDialog
from app.settings import KEEP_AWAKE, NOTIFICATIONS, TASK_PROGRESS, TRAY_ICON
from core import __version__
from core.measure.estimate.prices import Prices
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def preferred(folder: Path, **values: Any) -> Preferred:
    """With all folders in one."""
    return Preferred(
        "light", 20, *(KeptFolder(title, folder / title, "") for title in ("Runs", "Models", "More")), **values
    )


def test_each_setting_tells_what_was_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    dialog = SettingsDialog(preferred(tmp_path, off=[NOTIFICATIONS]))
    qtbot.addWidget(dialog)
    dialog.show()
    assert [name for name, radio in dialog.themes.items() if radio.isChecked()] == ["light"]
    with qtbot.waitSignal(dialog.theme_chosen) as theme:
        dialog.themes["dark"].click()
    assert theme.args == ["dark"]
    assert dialog.smoothing.strength == 20
    with qtbot.waitSignal(dialog.smoothing_chosen):
        qtbot.keyClick(dialog.smoothing.slider, Qt.Key.Key_Right)
    with qtbot.waitSignal(dialog.switched) as notifies:
        qtbot.keyClick(dialog.switches[NOTIFICATIONS], Qt.Key.Key_Space)
    assert notifies.args == [NOTIFICATIONS, True]
    for name in (TASK_PROGRESS, TRAY_ICON, KEEP_AWAKE):
        with qtbot.waitSignal(dialog.switched) as switched:
            dialog.switches[name].click()
        assert switched.args == [name, False]
    for row, name in ((dialog.runs, "Runs"), (dialog.models, "Models"), (dialog.environments, "More")):
        with qtbot.waitSignal(dialog.folder_requested) as opened:
            row.open.click()
        assert opened.args == [tmp_path / name]
    buttons = dialog.findChildren(QAbstractButton)
    assert all(button.text() or button.accessibleName() for button in buttons)
    assert not any(button.isDefault() for button in dialog.findChildren(QPushButton))


def test_prices_are_typed_with_their_currency(qtbot: QtBot, tmp_path: Path) -> None:
    dialog = SettingsDialog(preferred(tmp_path, prices=Prices(0.3, None, "€")))
    qtbot.addWidget(dialog)
    dialog.show()
    assert (dialog.price_kwh.text(), dialog.price_gpu_hour.text()) == ("0.3 €", "")
    height = dialog.height()
    qtbot.keyClicks(dialog.price_gpu_hour, "dear")
    qtbot.keyClick(dialog.price_gpu_hour, Qt.Key.Key_Return)
    problem = dialog.price_problem
    assert problem.isVisible() and problem.text().startswith("✕ 'dear' is not a price. Write a number")
    assert not dialog.price_note.isVisible() and dialog.height() == height, "one line takes the place of another"
    dialog.price_gpu_hour.clear()
    qtbot.keyClicks(dialog.price_gpu_hour, "2,50")
    with qtbot.waitSignal(dialog.prices_chosen) as chosen:
        qtbot.keyClick(dialog.price_gpu_hour, Qt.Key.Key_Return)
    assert chosen.args == [Prices(0.3, 2.5, "€")]
    assert dialog.price_note.isVisible() and dialog.price_note.text() == PRICES_NOTE and not problem.isVisible()


def test_versions_are_shown_and_copied(qtbot: QtBot) -> None:
    dialog = AboutDialog()
    qtbot.addWidget(dialog)
    dialog.show()
    assert any(f"Version {__version__}" == label.text() for label in dialog.findChildren(QLabel))
    dialog.copy.click()
    assert f"Rankdeck {__version__}" in QGuiApplication.clipboard().text()
    with qtbot.waitSignal(dialog.docs_requested):
        dialog.docs.click()
