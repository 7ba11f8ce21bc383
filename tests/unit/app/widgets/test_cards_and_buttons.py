"""Cards, badges and buttons that the views share: their sizes, their colours, and what a press does."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.style.theme import Theme
from app.style.tones import tone
from app.widgets.buttons import Chip, PrimaryButton
from app.widgets.card import Badge, Card

pytestmark = pytest.mark.windows


def test_a_primary_button_stands_on_the_accent_and_can_be_pressed(qtbot: QtBot) -> None:
    button = PrimaryButton("&Start")
    qtbot.addWidget(button)
    button.resize(button.sizeHint())
    button.show()
    ground = button.grab().toImage().pixelColor(8, button.height() // 2)
    assert ground.name() == tone(button.palette(), "accent").name()
    with qtbot.waitSignal(button.clicked):
        qtbot.keyClick(button, Qt.Key.Key_Space)
    button.setEnabled(False)
    assert button.grab().toImage().pixelColor(8, button.height() // 2) != ground


def test_a_chip_and_a_badge_have_room_for_their_text(qtbot: QtBot) -> None:
    for widget in (Chip("All", "Select all"), Badge("Training", "success")):
        qtbot.addWidget(widget)
        text = widget.fontMetrics().horizontalAdvance(widget.text())
        assert widget.sizeHint().width() >= text + 16
        assert widget.minimumSizeHint() == widget.sizeHint()
    badge = Badge("Training", "success")
    qtbot.addWidget(badge)
    badge.say("Failed", "error")
    assert badge.text() == "Failed"


def test_a_card_follows_the_theme_and_shows_its_edge(qtbot: QtBot, qapp: QApplication) -> None:
    theme = qapp.findChild(Theme) or Theme(qapp)
    card = Card(edge="error")
    qtbot.addWidget(card)
    card.resize(80, 40)
    card.show()
    grounds: list[QColor] = []
    try:
        for dark in (False, True):
            theme.set_dark(dark)
            qapp.processEvents()
            picture = card.grab().toImage()
            assert picture.pixelColor(1, 20).name() == tone(card.palette(), "error").name()
            grounds.append(picture.pixelColor(40, 20))
    finally:
        theme.set_dark(False)
    assert grounds[0].lightness() > 200 > 100 > grounds[1].lightness()
