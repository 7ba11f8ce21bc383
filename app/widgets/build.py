"""Builders for the labels, buttons, editors and layouts that the views share, each in one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from PySide6.QtGui import QFontDatabase, QPalette
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.style.icons import icon
from app.widgets.steady import ComboBox

# Left, top, right and bottom in pixels.
Margins: TypeAlias = tuple[int, int, int, int]
# What a column or a row holds; None is a stretch.
Part: TypeAlias = QWidget | QLayout | None
NO_MARGINS: Final[Margins] = (0, 0, 0, 0)
TITLE_SCALE: Final = 1.35
W = TypeVar("W", bound=QWidget)
B = TypeVar("B", bound=QBoxLayout)


def named(widget: W, name: str, tip: str = "") -> W:
    """Name a widget for screen readers, and give it a tooltip."""
    widget.setAccessibleName(name)
    if tip:
        widget.setToolTip(tip)
    return widget


def muted_label(text: str = "", *, wraps: bool = True) -> QLabel:
    label = QLabel(text, wordWrap=wraps)
    label.setForegroundRole(QPalette.ColorRole.PlaceholderText)
    return label


def bold_label(text: str = "", buddy: QWidget | None = None) -> QLabel:
    label = QLabel(text)
    font = label.font()
    font.setBold(True)
    label.setFont(font)
    if buddy is not None:
        label.setBuddy(buddy)
    return label


def page_title(text: str) -> QLabel:
    """The heading of a page or a sheet: bold, and larger than other text."""
    label = bold_label(text)
    font = label.font()
    font.setPointSizeF(font.pointSizeF() * TITLE_SCALE)
    label.setFont(font)
    return label


def icon_button(sign: str, tip: str, on_click: Callable[..., object] | None = None, name: str = "") -> QToolButton:
    """A button with only an icon; screen readers read `name`, or else the tooltip."""
    button = named(QToolButton(), name or tip, tip)
    button.setIcon(icon(sign))
    if on_click is not None:
        button.clicked.connect(on_click)
    return button


def code_box(name: str, text: str = "", *, framed: bool = True) -> QPlainTextEdit:
    """Read-only text in the fixed font; Tab leaves it."""
    box = named(QPlainTextEdit(text), name)
    box.setReadOnly(True)
    box.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    box.setTabChangesFocus(True)
    if not framed:
        box.setFrameShape(QFrame.Shape.NoFrame)
        box.document().setDocumentMargin(8)
    return box


def search_line(hint: str, name: str) -> QLineEdit:
    return named(QLineEdit(placeholderText=hint, clearButtonEnabled=True), name)


def narrow(combo: ComboBox, letters: int = 4) -> None:
    """Allow a list to be narrower than its longest entry."""
    combo.setMinimumContentsLength(letters)
    combo.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)


def scrolled(body: QWidget) -> QScrollArea:
    area = QScrollArea(widgetResizable=True)
    area.setWidget(body)
    area.setFrameShape(QFrame.Shape.NoFrame)
    return area


def lay_column(
    owner: QWidget | None, *parts: Part, spacing: int = 0, margins: Margins = NO_MARGINS, grow: Part = None
) -> QVBoxLayout:
    """Lay parts out from the top down; a part that is None is a stretch, and `grow` takes the room that is left.

    `owner` is the widget that they fill, or None for a column within another layout.
    """
    return _filled(QVBoxLayout() if owner is None else QVBoxLayout(owner), parts, spacing, margins, grow)


def lay_row(
    owner: QWidget | None, *parts: Part, spacing: int = 0, margins: Margins = NO_MARGINS, grow: Part = None
) -> QHBoxLayout:
    return _filled(QHBoxLayout() if owner is None else QHBoxLayout(owner), parts, spacing, margins, grow)


def label_grid(owner: QWidget | None, label_width: int = 0, *, line_spacing: int = 4) -> QGridLayout:
    """A grid of labels and editors; the second column, of editors, grows."""
    grid = QGridLayout() if owner is None else QGridLayout(owner)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(8)
    grid.setVerticalSpacing(line_spacing)
    grid.setColumnMinimumWidth(0, label_width)
    grid.setColumnStretch(1, 1)
    return grid


def _filled(box: B, parts: tuple[Part, ...], spacing: int, margins: Margins, grow: Part) -> B:
    box.setContentsMargins(*margins)
    box.setSpacing(spacing)
    for part in parts:
        if part is None:
            box.addStretch()
        elif isinstance(part, QWidget):
            box.addWidget(part, int(part is grow))
        else:
            box.addLayout(part, int(part is grow))
    return box
