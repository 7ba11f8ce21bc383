"""Numbers, tones, icons, notices: the small parts everything is made of."""

from __future__ import annotations

import gc
import itertools

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QLabel,
    QListView,
    QStyle,
    QStyleOptionToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.style.icons import ICON_DIR, app_icon, icon
from app.style.theme import Theme
from app.style.tones import is_dark, muted, tone
from app.widgets.build import lay_column
from app.widgets.dialog import FRAME, set_first_size
from app.widgets.disclosure import Disclosure
from app.widgets.elided_label import ElidedLabel
from app.widgets.notice_bar import NoticeBar, Step
from app.widgets.page import LEAST_WIDTH, Page
from app.widgets.ruled_splitter import RuledSplitter
from core.errors import UsageError
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def contrast(front: QColor, back: QColor) -> float:
    """WCAG 2's contrast ratio."""

    def light(colour: QColor) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    bright, dim = sorted((light(front), light(back)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    before = QPalette(qapp.palette())
    made = Theme(qapp)
    yield made
    qapp.setPalette(before)
    made.deleteLater()


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_both_grounds(theme: Theme, qapp: QApplication, dark: bool) -> None:
    theme.set_dark(dark)
    palette = qapp.palette()
    assert is_dark(palette) is dark
    grounds = [palette.color(QPalette.ColorRole.Window), palette.color(QPalette.ColorRole.Base)]
    fronts = [tone(palette, name) for name in ("accent", "success", "warning", "error")] + [muted(palette)]
    fronts.append(palette.color(QPalette.ColorRole.PlaceholderText))
    for front, ground in itertools.product(fronts, grounds):
        assert contrast(front, ground) >= 4.5, (front.name(), ground.name())
    accent = palette.color(QPalette.ColorRole.Highlight)
    assert contrast(palette.color(QPalette.ColorRole.HighlightedText), accent) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_a_chosen_row_is_quiet_and_readable(theme: Theme, qtbot: QtBot, qapp: QApplication, dark: bool) -> None:
    rows = QListView()
    qtbot.addWidget(rows)
    theme.set_dark(dark)
    palette, roles = qapp.palette(rows), QPalette.ColorRole
    chosen = palette.color(roles.Highlight)
    assert 1.05 < contrast(chosen, palette.color(roles.Base)) < 2
    assert contrast(palette.color(roles.HighlightedText), chosen) >= 4.5


def test_every_icon_can_be_drawn_in_both_themes(theme: Theme) -> None:
    names = [path.stem for path in ICON_DIR.glob("*.svg") if path.stem != "app"]
    assert len(names) > 20
    for dark in (False, True):
        theme.set_dark(dark)
        for name in names:
            image = icon(name).pixmap(20, 20).toImage()
            drawn = [
                image.pixelColor(x, y) for x in range(20) for y in range(20) if image.pixelColor(x, y).alpha() > 200
            ]
            assert drawn, name
            assert all((colour.lightness() > 128) is dark for colour in drawn), name
    assert not app_icon().isNull()
    copy = QIcon(icon("start"))
    assert not copy.pixmap(16, 16, QIcon.Mode.Disabled).isNull()


def test_a_notice_says_title_cause_step_and_does_the_step(qtbot: QtBot) -> None:
    bar = NoticeBar()
    qtbot.addWidget(bar)
    done: list[str] = []
    assert bar.isHidden() and bar.title == ""
    bar.show_error(UsageError("It is empty.", "Choose another."), Step("&Choose…", lambda: done.append("chosen")))
    assert bar.title == UsageError.title and bar.text == "It is empty. Choose another."
    assert bar.accessibleName() == f"error: {UsageError.title}"
    bar.button.click()
    assert done == ["chosen"]
    bar.close_button.click()
    assert bar.isHidden()


def test_a_notice_has_its_button_below_the_text_where_it_would_squeeze_it(qtbot: QtBot) -> None:
    ground = QWidget()
    qtbot.addWidget(ground)
    bar = NoticeBar(ground)
    bar.say("error", "The disk is full", "Free some space. " * 8, Step("Choose another folder…", ground.hide))
    ground.show()
    for width, is_below in ((900, False), (400, True)):
        bar.setGeometry(0, 0, width, bar.heightForWidth(width))
        QApplication.processEvents()
        bar.setGeometry(0, 0, width, bar.heightForWidth(width))
        assert (bar.button.y() >= bar._text.geometry().bottom()) is is_below
        assert bar._text.width() >= 250 and bar._text.height() >= bar._text.heightForWidth(bar._text.width())


def test_a_label_with_too_little_room_ends_in_an_ellipsis_and_keeps_its_words(qtbot: QtBot) -> None:
    window = QWidget()  # on its own the label would be a window, which Windows keeps wider than 60 pixels
    qtbot.addWidget(window)
    label = ElidedLabel(window)
    window.resize(640, 60)
    window.show()
    words = "on NVIDIA RTX 6000 Ada Generation alone"
    label.resize(60, 20)
    label.set_full_text(words)
    assert label.text().endswith("…") and label.full_text == label.toolTip() == words
    label.resize(20, 20)
    qtbot.waitUntil(lambda: label.text() == "")
    label.resize(600, 20)
    qtbot.waitUntil(lambda: label.text() == words)
    label.set_full_text(words, "1 GPU")
    assert label.text() == words == label.toolTip()
    label.resize(60, 20)
    qtbot.waitUntil(lambda: label.text() == "1 GPU")


def test_an_open_disclosure_turns_its_chevron_and_is_drawn_as_a_closed_one(qtbot: QtBot) -> None:
    disclosure = Disclosure("Advanced", "Show more")
    qtbot.addWidget(disclosure)
    closed = disclosure.icon().cacheKey()
    disclosure.click()
    option = QStyleOptionToolButton()
    disclosure.initStyleOption(option)
    assert disclosure.isChecked() and disclosure.icon().cacheKey() != closed
    assert not option.state & QStyle.StateFlag.State_On, "it is no pressed button"


def test_a_splitter_outlives_garbage_collection(qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    panes = RuledSplitter(Qt.Orientation.Horizontal)
    for text in ("left", "right"):
        panes.addWidget(QLabel(text))
    lay_column(page, panes)
    del panes
    page.show()
    page.grab()
    gc.collect()
    assert page.findChild(RuledSplitter) is not None


def test_escape_closes_it_and_nothing_else_does(qtbot: QtBot) -> None:
    page = Page()
    qtbot.addWidget(page)
    assert page.minimumSizeHint().width() == LEAST_WIDTH
    with qtbot.assertNotEmitted(page.close_requested):
        qtbot.keyClick(page, Qt.Key.Key_F5)
    with qtbot.waitSignal(page.close_requested):
        qtbot.keyClick(page, Qt.Key.Key_Escape)


def test_a_dialog_is_no_larger_than_its_screen(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    set_first_size(dialog, 300, 200)
    assert dialog.size() == QSize(300, 200)
    set_first_size(dialog, 100_000, 100_000)
    room = dialog.screen().availableSize()
    assert dialog.size() == QSize(room.width(), room.height() - FRAME)
