"""Buttons that look the same on every style: the primary one, outlined ones, chips; and those of actions."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, QPaintEvent, QPalette, QPen, QPixmap
from PySide6.QtWidgets import QPushButton, QToolButton

from app.style.icons import paint_icon
from app.style.palette import plot_colours
from app.style.tones import blend, is_dark, muted, rule, tone
from app.widgets.card import draw_card

CORNER: Final = 4
HEIGHT: Final = 32
SIGN: Final = 16
GAP: Final = 6
MARGIN: Final = 12
CHEVRON: Final = 14
# Text on the accent, light and dark: at least 4.5 to 1.
_ON_ACCENT: Final = ("#ffffff", "#101214")


class PaintedButton(QPushButton):
    """A button with its icon, text and chevron (of a menu) in its middle, on a painted ground."""

    margin = MARGIN

    def sizeHint(self) -> QSize:
        margin = self.margin if self.text() else 8
        return QSize(self._content_width() + 2 * margin, max(HEIGHT, self.fontMetrics().height() + 12))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _text_width(self) -> int:
        return self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text()).width()

    def _has_chevron(self) -> bool:
        return self.menu() is not None and bool(self.text())

    def _content_width(self) -> int:
        parts = [self._text_width()] if self.text() else []
        parts += [] if self.icon().isNull() else [SIGN]
        parts += [CHEVRON] if self._has_chevron() else []
        return sum(parts) + GAP * (len(parts) - 1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        front = self._paint_ground(painter, QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.setPen(front)
        left = (self.width() - self._content_width()) // 2
        if not self.icon().isNull():
            at = QRect(left, (self.height() - SIGN) // 2, SIGN, SIGN)
            painter.drawPixmap(at, _coloured(self.icon(), front, self.devicePixelRatioF()))
            left += SIGN + GAP
        if self.text():
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic
            painter.drawText(QRect(left, 0, self._text_width(), self.height()), flags, self.text())
            left += self._text_width() + GAP
        if self._has_chevron():
            at = QRect(left, (self.height() - CHEVRON) // 2, CHEVRON, CHEVRON)
            paint_icon(painter, "chevron-down", at.topLeft(), CHEVRON, front)

    def _paint_ground(self, painter: QPainter, box: QRectF) -> QColor:
        """Paint the ground, and return the colour of its contents."""
        raise NotImplementedError

    def follow(self, action: QAction, text: str | None = None) -> None:
        """Follow an action: its text (or `text`), icon, state and reason."""
        self.action, self._own_text = action, text
        self.clicked.connect(action.trigger)
        action.changed.connect(self._on_action_changed)
        self._on_action_changed()

    def _on_action_changed(self) -> None:
        action = self.action
        self.setText(action.text() if self._own_text is None else self._own_text)
        self.setIcon(action.icon())
        self.setEnabled(action.isEnabled())
        self.setToolTip(action.toolTip())
        self.setAccessibleName((self.text() or action.text()).replace("&", ""))
        self.setAccessibleDescription(action.toolTip())
        self.updateGeometry()


class PrimaryButton(PaintedButton):
    """The main button of a view, on the accent."""

    margin = 16

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        font = self.font()
        font.setBold(True)
        self.setFont(font)
        self.setMinimumHeight(HEIGHT)

    def _paint_ground(self, painter: QPainter, box: QRectF) -> QColor:
        palette = self.palette()
        window = palette.color(QPalette.ColorRole.Window)
        ground, front = tone(palette, "accent"), QColor(_ON_ACCENT[is_dark(palette)])
        if not self.isEnabled():
            ground, front = blend(rule(palette), window, 0.6), muted(palette)
        elif self.isDown() or self.underMouse():
            ground = blend(ground, window, 0.8 if self.isDown() else 0.9)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(box, CORNER, CORNER)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(front, 1))
            painter.drawRoundedRect(box.adjusted(2, 2, -2, -2), CORNER - 1, CORNER - 1)
        return front


class OutlinedButton(PaintedButton):
    """A button with a hairline; `bare`: it has none until the mouse is over it."""

    def __init__(self, text: str = "", *, bare: bool = False) -> None:
        super().__init__(text)
        self._bare = bare
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def _paint_ground(self, painter: QPainter, box: QRectF) -> QColor:
        palette = self.palette()
        ground = plot_colours(palette).ground
        front = palette.color(QPalette.ColorRole.WindowText) if self.isEnabled() else muted(palette)
        is_hot = self.isEnabled() and (self.underMouse() or self.isDown())
        if not self._bare or is_hot or self.hasFocus():
            painter.setPen(tone(palette, "accent") if self.hasFocus() else rule(palette))
            painter.setBrush(blend(front, ground, 0.14 if self.isDown() else 0.06) if is_hot else ground)
            painter.drawRoundedRect(box, CORNER, CORNER)
        return front


class Chip(PaintedButton):
    """A small button shaped as a pill, such as *All* and *None*."""

    def __init__(self, text: str, tip: str = "") -> None:
        super().__init__(text)
        self.setToolTip(tip)

    def sizeHint(self) -> QSize:
        return QSize(self._text_width() + 2 * self.margin, self.fontMetrics().height() + 6)

    def _paint_ground(self, painter: QPainter, box: QRectF) -> QColor:
        palette = self.palette()
        accent, window = tone(palette, "accent"), palette.color(QPalette.ColorRole.Window)
        is_lit = self.isEnabled() and (self.hasFocus() or self.isChecked())
        painter.setPen(accent if is_lit else rule(palette))
        share = 0.2 if self.isDown() else 0.1 if self.isEnabled() and self.underMouse() else 0.0
        painter.setBrush(blend(accent, window, share) if share else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        return palette.color(QPalette.ColorRole.WindowText) if self.isEnabled() else muted(palette)


class ActionButton(OutlinedButton):
    """An outlined button that follows an action; a bare one shows only its icon."""

    def __init__(self, action: QAction, *, bare: bool = False) -> None:
        super().__init__(bare=bare)
        self.follow(action, "" if bare else None)


class PrimaryActionButton(PrimaryButton):
    """A primary button that follows an action."""

    def __init__(self, action: QAction) -> None:
        super().__init__()
        self.follow(action)


class SearchButton(QToolButton):
    """A button that looks like a search field, and opens the command palette."""

    def __init__(self, action: QAction) -> None:
        super().__init__()
        self.action = action
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Search runs, settings and commands")
        self.setToolTip(action.toolTip())
        self.clicked.connect(action.trigger)

    def sizeHint(self) -> QSize:
        return QSize(320, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_card(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, inner = self.palette(), self.rect().adjusted(MARGIN, 0, -MARGIN, 0)
        if self.hasFocus() or self.underMouse():
            painter.setPen(tone(palette, "accent") if self.hasFocus() else rule(palette))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), CORNER + 2, CORNER + 2)
        painter.setPen(muted(palette))
        key = self.action.shortcut().toString(self.action.shortcut().SequenceFormat.NativeText)
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, key)
        room = inner.width() - self.fontMetrics().horizontalAdvance(key) - 2 * GAP
        text = self.fontMetrics().elidedText("Search runs, settings, commands", Qt.TextElideMode.ElideRight, room)
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def _coloured(sign: QIcon, colour: QColor, ratio: float) -> QPixmap:
    pixmap = sign.pixmap(QSize(SIGN, SIGN), ratio)
    painter = QPainter(pixmap)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(pixmap.rect(), colour)
    painter.end()
    return pixmap
