"""Controls as they are painted: outlines that can be seen, the accent where it belongs, sizes of one grid."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QMenu,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QScrollBar,
    QStyle,
    QStyleOptionSlider,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.style.control_style import HEIGHT, ControlStyle
from app.style.theme import Theme
from app.style.tones import tone
from tests.helpers.window_fixture import OFFSCREEN_NOISE
from tests.unit.app.widgets.test_small_parts import contrast

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    before = QPalette(qapp.palette())
    made = Theme(qapp)
    if not isinstance(qapp.style(), ControlStyle):
        made.deleteLater()
        pytest.skip("this system's own style is used")
    yield made
    qapp.setPalette(before)
    made.deleteLater()


class CountedBar(QProgressBar):
    """Counts how often it is painted."""

    paints = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        self.paints += 1
        super().paintEvent(event)


def painted(widget: QWidget, qtbot: QtBot) -> QImage:
    qtbot.addWidget(widget)
    widget.show()
    return widget.grab().toImage()


def near(image: QImage, colour: QColor) -> list[QPoint]:
    """Points that have a colour."""
    rgba = image.convertToFormat(QImage.Format.Format_RGBA8888)
    pixels = np.frombuffer(rgba.constBits(), np.uint8).reshape(rgba.height(), rgba.width(), 4).astype(np.int16)
    rows, columns = np.nonzero((np.abs(pixels - colour.toTuple()) <= 3).all(axis=2))
    return [QPoint(x, y) for x, y in zip(columns.tolist(), rows.tolist(), strict=True)]


@pytest.mark.parametrize("dark", [False, True])
def test_an_empty_box_has_an_outline(theme: Theme, qtbot: QtBot, qapp: QApplication, dark: bool) -> None:
    theme.set_dark(dark)
    ground = qapp.palette().color(QPalette.ColorRole.Window)
    for box in (QCheckBox(), QRadioButton()):
        image = painted(box, qtbot)
        middle = image.height() // 2
        row = [image.pixelColor(x, middle) for x in range(18)]
        assert max(contrast(colour, ground) for colour in row) >= 3
        assert not near(image, tone(qapp.palette(), "accent"))
        box.setChecked(True)
        assert len(near(box.grab().toImage(), tone(qapp.palette(), "accent"))) > 30


@pytest.mark.parametrize("dark", [False, True])
def test_only_the_primary_button_has_the_accent(theme: Theme, qtbot: QtBot, qapp: QApplication, dark: bool) -> None:
    theme.set_dark(dark)
    accent = tone(qapp.palette(), "accent")
    plain, primary = QPushButton("Export"), QPushButton("Start")
    primary.setDefault(True)
    assert not near(painted(plain, qtbot), accent)
    image = painted(primary, qtbot)
    assert len(near(image, accent)) > image.width() * image.height() / 2
    colours = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    assert max(contrast(QColor(name), accent) for name in colours) >= 4.5  # its text
    primary.setEnabled(False)
    assert not near(primary.grab().toImage(), accent)


def test_a_line_shows_where_the_keyboard_is(theme: Theme, qtbot: QtBot, qapp: QApplication) -> None:
    theme.set_dark(False)
    window = QWidget()
    lines = [QLineEdit(window), QLineEdit(window)]
    grid = QGridLayout(window)
    for line in lines:
        grid.addWidget(line)
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    lines[0].setFocus()
    qtbot.waitUntil(lines[0].hasFocus)
    accent = tone(qapp.palette(), "accent")
    assert near(lines[0].grab().toImage(), accent)
    assert not near(lines[1].grab().toImage(), accent)
    ground = qapp.palette().color(QPalette.ColorRole.Window)
    quiet = lines[1].grab().toImage()
    column = [quiet.pixelColor(quiet.width() // 2, y) for y in range(quiet.height())]
    assert max(contrast(colour, ground) for colour in column) >= 3


@pytest.mark.usefixtures("theme")
def test_fields_and_buttons_have_one_height(qtbot: QtBot) -> None:
    for made in (QLineEdit(), QPushButton("a"), QComboBox()):
        qtbot.addWidget(made)
        assert made.sizeHint().height() == HEIGHT, made


@pytest.mark.parametrize("dark", [False, True])
def test_the_chosen_row_and_tab_have_a_bar_of_the_accent(
    theme: Theme, qtbot: QtBot, qapp: QApplication, dark: bool
) -> None:
    theme.set_dark(dark)
    accent = tone(qapp.palette(), "accent")
    rows = QListWidget()
    rows.addItems(["one", "two"])
    assert not near(painted(rows, qtbot), accent)
    rows.setCurrentRow(1)
    place = rows.visualItemRect(rows.item(1)).translated(rows.viewport().pos())
    assert all(place.contains(point) and point.x() <= place.left() + 3 for point in near(rows.grab().toImage(), accent))
    assert near(rows.grab().toImage(), accent)
    tabs = QTabBar()
    tabs.addTab("Charts")
    tabs.addTab("Log")
    points = near(painted(tabs, qtbot), accent)
    assert points and all(tabs.tabRect(0).contains(point) for point in points)


@pytest.mark.usefixtures("theme")
def test_a_bar_is_filled_to_its_share(qtbot: QtBot, qapp: QApplication) -> None:
    bar = QProgressBar(textVisible=False)
    bar.setRange(0, 100)
    bar.setValue(40)
    bar.resize(200, 16)
    points = near(painted(bar, qtbot), tone(qapp.palette(), "accent"))
    assert abs(max(point.x() for point in points) - 80) <= 3
    assert len({point.y() for point in points}) <= 6


@pytest.mark.usefixtures("theme")
def test_a_bar_whose_progress_is_not_known_moves_and_is_never_full(qtbot: QtBot, qapp: QApplication) -> None:
    bar = CountedBar(textVisible=False, minimum=0, maximum=0)
    bar.resize(200, 16)
    seen = set()

    def has_moved() -> bool:
        columns = frozenset(point.x() for point in near(painted(bar, qtbot), tone(qapp.palette(), "accent")))
        assert len(columns) <= 70
        seen.add(columns)
        return len(seen) >= 4

    qtbot.waitUntil(has_moved)
    paints = bar.paints
    qtbot.waitUntil(lambda: bar.paints >= paints + 3)  # by itself


@pytest.mark.usefixtures("theme")
def test_a_scroll_bar_is_all_groove(qtbot: QtBot) -> None:
    bar = QScrollBar(Qt.Orientation.Vertical)
    bar.setRange(0, 300)
    bar.setPageStep(100)
    bar.resize(bar.sizeHint().width(), 200)
    painted(bar, qtbot)
    option = QStyleOptionSlider()
    bar.initStyleOption(option)

    def part(which: QStyle.SubControl) -> QRect:
        return bar.style().subControlRect(QStyle.ComplexControl.CC_ScrollBar, option, which, bar)

    assert part(QStyle.SubControl.SC_ScrollBarAddLine).isEmpty()
    assert part(QStyle.SubControl.SC_ScrollBarSlider) == QRect(0, 0, bar.width(), 50)
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(bar.width() // 2, 180))
    assert bar.value() == 100
    bar.setValue(300)
    bar.initStyleOption(option)
    assert part(QStyle.SubControl.SC_ScrollBarSlider).bottom() == 199


@pytest.mark.qt_log_ignore("This plugin does not support (raise|grabbing|propagateSizeHints)", extend=True)
@pytest.mark.parametrize("dark", [False, True])
def test_the_entry_that_is_pointed_at_is_quiet(theme: Theme, qtbot: QtBot, qapp: QApplication, dark: bool) -> None:
    theme.set_dark(dark)
    menu = QMenu()
    first = menu.addAction("One")
    menu.addAction("Two")
    qtbot.addWidget(menu)
    menu.popup(QPoint(0, 0))
    before = menu.grab().toImage()
    menu.setActiveAction(first)
    after = menu.grab().toImage()
    assert after != before and not near(after, tone(qapp.palette(), "accent"))
    menu.close()
