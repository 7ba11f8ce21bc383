"""The wheel in the window: it scrolls, and no setting changes under it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSlider,
    QApplication,
    QComboBox,
    QDialog,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.new_run.charts_dialog import ChartsDialog
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OpenWindow

pytestmark = [
    pytest.mark.windows,
    pytest.mark.qt_log_ignore(
        "This plugin does not support (propagateSizeHints|raise|grabbing)",
        "QWindowsWindow::setGeometry: Unable to set geometry",
        extend=True,
    ),
]
KINDS = (QComboBox, QAbstractSlider, QTabBar)
TURNS = [
    (QPoint(0, 120 * way), QPoint(0, 40 * way) if on_trackpad else QPoint())
    for way in (-1, 1)
    for on_trackpad in (False, True)
]


def turn(widget: QWidget, angle: QPoint, pixels: QPoint) -> None:
    place = QPointF(widget.rect().center())
    event = QWheelEvent(
        place, widget.mapToGlobal(place), pixels, angle, Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def value_of(widget: QWidget) -> object:
    if isinstance(widget, QComboBox):
        return widget.currentIndex(), widget.currentText()
    if isinstance(widget, QTabBar):
        return widget.currentIndex()
    return widget.value()  # type: ignore[attr-defined]


def changeable(root: QWidget | None = None) -> list[QWidget]:
    widgets = QApplication.allWidgets() if root is None else root.findChildren(QWidget)
    return [w for w in widgets if isinstance(w, KINDS) and not isinstance(w, QScrollBar)]


def changed_by_the_wheel(widgets: list[QWidget]) -> list[str]:
    found = []
    for widget in widgets:
        if isinstance(widget, QComboBox) and widget.count() > 2:
            widget.blockSignals(True)
            widget.setCurrentIndex(1)  # with an entry on either side
            widget.blockSignals(False)
        for angle, pixels in TURNS:
            before = value_of(widget)
            turn(widget, angle, pixels)
            if value_of(widget) != before or widget.hasFocus():
                found.append(f"{type(widget).__name__} {widget.accessibleName() or widget.objectName()}")
    return found


def open_everything(rankdeck: Rankdeck, qtbot: QtBot) -> None:
    """Every page and every dialog of the window that can be opened without a run of its own."""
    window = rankdeck.window
    actions = window.actions_
    actions.new_run.setChecked(True)
    for action in (
        actions.compare, actions.doctor, actions.settings,
        actions.resume, actions.environment, actions.about, actions.palette,
    ):  # fmt: skip
        if action.isEnabled():
            action.trigger()
            QApplication.processEvents()
            if QApplication.activeModalWidget() is not None:
                QApplication.activeModalWidget().setModal(False)  # type: ignore[attr-defined]
    for recipe in range(window.new_run.recipe.count()):
        window.new_run.recipe.setCurrentIndex(recipe)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: window.desk.is_open)


def test_the_wheel_changes_nothing_anywhere(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    for name in ("one", "two"):
        write_lines(runs_dir / name, Shape(steps=30))
    rankdeck = open_window()
    rankdeck.window.runs.run_chosen.emit(runs_dir / "one")
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up)
    open_everything(rankdeck, qtbot)
    charts = ChartsDialog("", {"loss": "loss", "acc": "acc"}, rankdeck.window)
    charts.show()
    found = changeable()
    kinds = {kind for kind in KINDS for widget in found if isinstance(widget, kind)}
    assert kinds == set(KINDS), "there is one of each"
    focused = QApplication.focusWidget()
    if focused is not None:
        focused.clearFocus()
    assert changed_by_the_wheel(found) == []
    for dialog in [w for w in QApplication.topLevelWidgets() if isinstance(w, QDialog)]:
        dialog.close()


def test_the_wheel_scrolls_the_page_under_a_combo(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    rankdeck.window.actions_.new_run.setChecked(True)
    sheet = rankdeck.window.new_run
    qtbot.waitUntil(sheet.isVisible)
    sheet.form.more.setChecked(True)
    combo = next(w for w in changeable(sheet) if isinstance(w, QComboBox) and w.isVisible())
    area = combo.parentWidget()
    while not isinstance(area, QScrollArea):
        area = area.parentWidget()
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    combo.showPopup()
    qtbot.waitUntil(combo.view().isVisible)
    combo.hidePopup()
    combo.setFocus()
    window, text = combo.window().windowHandle(), combo.currentText()
    for angle, pixels in ((QPoint(0, -120), QPoint()), (QPoint(0, -60), QPoint(0, -30))):
        bar.setValue(0)
        place = combo.mapTo(combo.window(), combo.rect().center())
        QTest.wheelEvent(window, QPointF(place), angle, pixels)  # as from the system: what is ignored goes to parents
        qtbot.waitUntil(lambda: bar.value() > 0)
        assert combo.currentText() == text
    bar.setValue(0)
    other = next(
        w for w in changeable(sheet) if isinstance(w, QComboBox) and not w.visibleRegion().isEmpty() and w is not combo
    )
    place = other.mapTo(other.window(), other.rect().center())
    QTest.wheelEvent(window, QPointF(place), QPoint(0, -120))
    qtbot.waitUntil(lambda: bar.value() > 0)
    assert not other.hasFocus(), "the wheel gives no focus"
