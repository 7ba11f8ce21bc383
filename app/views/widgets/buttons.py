"""The primary button and chips."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QPushButton, QWidget

from app.views.style.tones import blend, is_dark, muted, rule, tone

CORNER: Final = 4
ICON: Final = 16
GAP: Final = 6
_HOVER: Final = 0.9
_PRESSED: Final = 0.8
_ON_ACCENT: Final = ("#ffffff", "#101214")
"""Text on the accent, light and dark: at least 4.5 to 1."""


class PrimaryButton(QPushButton):
    """The one button of a view that a person came for: on the accent, whatever the style.

    Styles draw a default button each in their own way (Fusion with a frame only), so it is painted here.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        font = self.font()
        font.setBold(True)
        self.setFont(font)
        self.setMinimumHeight(32)

    def sizeHint(self) -> QSize:
        """Text and icon with 16 pixels at each side."""
        text = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text())
        sign = 0 if self.icon().isNull() else ICON + GAP
        return QSize(text.width() + sign + 32, max(32, text.height() + 12))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, box = self.palette(), QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        window = palette.color(palette.ColorRole.Window)
        ground, front = tone(palette, "accent"), QColor(_ON_ACCENT[is_dark(palette)])
        if not self.isEnabled():
            ground, front = blend(rule(palette), window, 0.6), muted(palette)
        elif self.isDown():
            ground = blend(ground, window, _PRESSED)
        elif self.underMouse():
            ground = blend(ground, window, _HOVER)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(box, CORNER, CORNER)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(front, 1))
            painter.drawRoundedRect(box.adjusted(2, 2, -2, -2), CORNER - 1, CORNER - 1)
        self._paint_label(painter, front)

    def _paint_label(self, painter: QPainter, front: QColor) -> None:
        width = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text()).width()
        sign = 0 if self.icon().isNull() else ICON + GAP
        left = (self.width() - width - sign) // 2
        if sign:
            at = QRect(left, (self.height() - ICON) // 2, ICON, ICON)
            painter.drawPixmap(at, _coloured(self.icon(), front, self.devicePixelRatioF()))
        painter.setPen(front)
        painter.setFont(self.font())
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic
        painter.drawText(QRect(left + sign, 0, width, self.height()), flags, self.text())


class Chip(QPushButton):
    """A small button shaped as a pill, for shortcuts such as *All* and *None*."""

    def sizeHint(self) -> QSize:
        """The text with the pill's round ends."""
        text = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text())
        return QSize(text.width() + 24, text.height() + 6)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, box = self.palette(), QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        accent = tone(palette, "accent")
        is_lit = self.isEnabled() and (self.hasFocus() or self.isChecked())
        painter.setPen(accent if is_lit else rule(palette))
        window = palette.color(palette.ColorRole.Window)
        share = 0.2 if self.isDown() else 0.1 if self.isEnabled() and self.underMouse() else 0.0
        painter.setBrush(blend(accent, window, share) if share else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(palette.color(palette.ColorRole.WindowText) if self.isEnabled() else muted(palette))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextShowMnemonic, self.text())


def primary_button(text: str) -> PrimaryButton:
    """A primary button."""
    return PrimaryButton(text)


def chip(text: str, tip: str = "") -> Chip:
    """A chip with its tooltip."""
    button = Chip(text)
    button.setToolTip(tip)
    return button


def _coloured(sign: QIcon, colour: QColor, ratio: float) -> QPixmap:
    pixmap = sign.pixmap(QSize(ICON, ICON), ratio)
    painter = QPainter(pixmap)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(pixmap.rect(), colour)
    painter.end()
    return pixmap
