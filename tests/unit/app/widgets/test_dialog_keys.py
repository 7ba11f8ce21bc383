"""Dialogs by keyboard: Tab in the order of what is seen, Enter for the default, Escape to leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.new_run.charts_dialog import ChartsDialog
from app.new_run.install_dialog import InstallDialog
from core.machine.packages import offer_for
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]

DIALOGS: dict[str, tuple[Callable[[], QDialog], str, list[str]]] = {
    "charts": (
        lambda: ChartsDialog("", {"loss": "loss", "acc": "acc"}),
        "Use these",
        ["Charts for printed names", "Chart of loss", "Chart of acc", "Use these", "Add a name", "Cancel"],
    ),
    "install": (
        lambda: InstallDialog("It needs gymnasium.", offer_for(["gymnasium"])),
        "Install",
        ["Command to run", "Install", "Cancel"],
    ),
}


def shown(name: str, qtbot: QtBot) -> QDialog:
    dialog = DIALOGS[name][0]()
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(lambda: dialog.focusWidget() is not None)
    return dialog


def focused(dialog: QDialog) -> str:
    """What a screen reader says of the part that has the keyboard."""
    widget = dialog.focusWidget()
    assert widget is not None
    return widget.accessibleName() or (widget.text().replace("&", "") if isinstance(widget, QPushButton) else "")


@pytest.mark.parametrize("name", DIALOGS)
def test_tab_goes_through_a_dialog_from_top_to_bottom(name: str, qtbot: QtBot) -> None:
    dialog = shown(name, qtbot)
    names = []
    for _ in DIALOGS[name][2]:
        names.append(focused(dialog))
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    assert names == DIALOGS[name][2]


@pytest.mark.parametrize("name", DIALOGS)
def test_enter_does_the_default_and_escape_nothing(name: str, qtbot: QtBot) -> None:
    dialog = shown(name, qtbot)
    default = [button.text().replace("&", "") for button in dialog.findChildren(QPushButton) if button.isDefault()]
    assert default == [DIALOGS[name][1]]
    with qtbot.waitSignal(dialog.rejected):
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
