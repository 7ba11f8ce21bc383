"""Buttons of the window's actions: outlined, on the primary ground, or a bare sign."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QIcon, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.views.style.icons import paint_icon
from app.views.style.palette import plot_colours
from app.views.style.tones import blend, muted, rule, tone
from app.views.widgets.buttons import CORNER, PrimaryButton
from app.views.widgets.card import draw_card

HEIGHT: Final = 32
SIGN: Final = 16
GAP: Final = 6
MARGIN: Final = 12
CHEVRON: Final = 14


class OutlinedButton(QToolButton):
    """A button with a hairline and a chevron if it has a menu; the same on every style.

    Args:
        text: What it says; empty: only its sign is shown.
        parent: Qt owner.
        bare: It has no outline until the mouse is over it.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None, *, bare: bool = False) -> None:
        super().__init__(parent)
        self._bare = bare
        self.setText(text)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setIconSize(QSize(SIGN, SIGN))

    def open_menu(self, menu: QMenu) -> None:
        """Opens `menu` on a click."""
        self.setMenu(menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    def sizeHint(self) -> QSize:
        """Sign, text and chevron with their margins."""
        parts = [self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text()).width()] if self.text() else []
        if not self.icon().isNull():
            parts.append(SIGN)
        if self._has_chevron:
            parts.append(CHEVRON)
        width = sum(parts) + GAP * (len(parts) - 1) + 2 * (MARGIN if self.text() else 8)
        return QSize(width, max(HEIGHT, self.fontMetrics().height() + 12))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    @property
    def _has_chevron(self) -> bool:
        return self.menu() is not None and bool(self.text())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette, box = self.palette(), QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        ground = plot_colours(palette).ground
        front = palette.color(QPalette.ColorRole.WindowText) if self.isEnabled() else muted(palette)
        is_hot = self.isEnabled() and (self.underMouse() or self.isDown())
        if not self._bare or is_hot or self.hasFocus():
            painter.setPen(tone(palette, "accent") if self.hasFocus() else rule(palette))
            painter.setBrush(blend(front, ground, 0.14 if self.isDown() else 0.06) if is_hot else ground)
            painter.drawRoundedRect(box, CORNER, CORNER)
        painter.setPen(front)
        self._paint_parts(painter)

    def _paint_parts(self, painter: QPainter) -> None:
        left = (self.width() - self.sizeHint().width()) // 2 + (MARGIN if self.text() else 8)
        if not self.icon().isNull():
            mode = QIcon.Mode.Normal if self.isEnabled() else QIcon.Mode.Disabled
            self.icon().paint(painter, QRect(left, (self.height() - SIGN) // 2, SIGN, SIGN), mode=mode)
            left += SIGN + GAP
        if self.text():
            width = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text()).width()
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic
            painter.drawText(QRect(left, 0, width, self.height()), flags, self.text())
            left += width + GAP
        if self._has_chevron:
            at = QRect(left, (self.height() - CHEVRON) // 2, CHEVRON, CHEVRON)
            paint_icon(painter, "chevron-down", at.topLeft(), CHEVRON, painter.pen().color())


class ActionButton(OutlinedButton):
    """An outlined button of an action: QToolButton alone drops the mnemonic of its action.

    Args:
        action: What it triggers; text, sign and reason follow it.
        parent: Qt owner.
        bare: As in `OutlinedButton`; it then shows only its sign.
    """

    def __init__(self, action: QAction, parent: QWidget | None = None, *, bare: bool = False) -> None:
        super().__init__(parent=parent, bare=bare)
        self.action = action
        self.setCheckable(action.isCheckable())
        self.clicked.connect(action.trigger)
        action.changed.connect(self._on_changed)
        self._on_changed()

    def _on_changed(self) -> None:
        action = self.action
        self.setText("" if self._bare else action.text())
        self.setIcon(action.icon())
        self.setEnabled(action.isEnabled())
        self.setChecked(action.isChecked())
        self.setToolTip(action.toolTip())
        self.setAccessibleName(action.text().replace("&", ""))
        self.setAccessibleDescription(action.toolTip())
        self.updateGeometry()


class PrimaryActionButton(PrimaryButton):
    """The primary button of an action.

    Args:
        action: What it triggers; sign and reason follow it.
        text: What the button says; empty: as the action.
    """

    def __init__(self, action: QAction, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text or action.text(), parent)
        self.action = action
        self._own_text = text
        self.clicked.connect(action.trigger)
        action.changed.connect(self._on_changed)
        self._on_changed()

    def _on_changed(self) -> None:
        action = self.action
        self.setText(self._own_text or action.text())
        self.setIcon(action.icon())
        self.setEnabled(action.isEnabled())
        self.setToolTip(action.toolTip())
        self.setAccessibleName(self.text().replace("&", ""))
        self.updateGeometry()


class SearchButton(QToolButton):
    """A field to look at, which opens the palette of commands.

    Args:
        action: What it triggers.
    """

    def __init__(self, action: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
