"""Icon in the system's tray: the state of live runs, and the messages of the tray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.outside.task_progress import IDLE, TaskState, TrayStatus

if TYPE_CHECKING:
    from app.outside.run_news import RunNews

SHOWN_MS: Final = 15_000
# Of the icon, for 100 to 300 %.
SIZES: Final = (16, 24, 32, 48)
# The size of the mark on the icon.
_DOT: Final = 0.46
# Seen on light and dark task bars alike; the mark's white ring parts it from the icon.
_COLOURS: Final = {
    TaskState.NORMAL: QColor("#35c49a"),
    TaskState.BUSY: QColor("#35c49a"),
    TaskState.PAUSED: QColor("#e9ab2f"),
    TaskState.ERROR: QColor("#e0452c"),
}
_ICONS: Final = {
    "success": QSystemTrayIcon.MessageIcon.Information,
    "warning": QSystemTrayIcon.MessageIcon.Warning,
    "error": QSystemTrayIcon.MessageIcon.Critical,
}


class Tray(QObject):
    """There while a run is live or a message is unread; away otherwise.

    Signals:
        opened: The window is to come forward.
        message_opened: The run's folder of the newest message, which was clicked.
    """

    opened = Signal()
    message_opened = Signal(object)

    def __init__(self, icon: QIcon, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._icon = icon
        self._tray: QSystemTrayIcon | None = None
        self._menu: QMenu | None = None
        self._status = IDLE
        self._news: RunNews | None = None

    @property
    def icon(self) -> QSystemTrayIcon | None:
        """Qt's icon; None before it was first needed."""
        return self._tray

    @staticmethod
    def is_available() -> bool:
        """Whether this desktop has a tray."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    def show_status(self, status: TrayStatus) -> None:
        """Shows what runs do; the same as before costs nothing."""
        if status != self._status:
            self._status = status
            self._show()

    def show_message(self, news: RunNews) -> None:
        """Shows a message beside the icon, which stays until `clear`; nothing where this desktop has no tray."""
        if not self.is_available():
            return
        self._news = news
        self._show()
        if self._tray is not None:
            self._tray.showMessage(news.title, news.text, _ICONS[news.kind], SHOWN_MS)

    def clear(self) -> None:
        """The window was looked at: nothing is unread."""
        if self._news is not None:
            self._news = None
            self._show()

    def close(self) -> None:
        """Takes the icon away."""
        self._status, self._news = IDLE, None
        self._show()
        if self._menu is not None:
            self._menu.deleteLater()
            self._menu = None

    def _show(self) -> None:
        status, news = self._status, self._news
        if status == IDLE and news is None:
            if self._tray is not None:
                self._tray.hide()
            return
        tray = self._tray or self._make()
        tray.setIcon(marked_icon(self._icon, status.look))
        tray.setToolTip(status.tip if news is None or status != IDLE else news.title)
        tray.show()

    def _make(self) -> QSystemTrayIcon:
        self._tray = tray = QSystemTrayIcon(self._icon, self)
        self._menu = QMenu()  # kept: the icon does not own it
        self._menu.addAction("&Open Rankdeck", self.opened.emit)
        tray.setContextMenu(self._menu)
        tray.messageClicked.connect(self._on_message_clicked)
        tray.activated.connect(self._on_activated)
        return tray

    def _on_message_clicked(self) -> None:
        if self._news is not None:
            self.message_opened.emit(self._news.run_dir)

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Context:
            return  # the menu
        if self._news is not None:
            self._on_message_clicked()
        else:
            self.opened.emit()


def marked_icon(icon: QIcon, look: TaskState) -> QIcon:
    """The icon with a mark at its lower right in the colour of a state."""
    colour = _COLOURS.get(look)
    if colour is None:
        return icon
    marked = QIcon()
    for size in SIZES:
        # In pixels whatever the screen's scale: else the mark would be placed in points, beyond the edge.
        pixmap = QPixmap(icon.pixmap(QSize(size, size), 1.0).scaled(size, size))
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = max(1.0, size / 16)
        side = size * _DOT
        spot = QRectF(size - side - width / 2, size - side - width / 2, side, side)
        painter.setPen(Qt.GlobalColor.white)
        painter.setBrush(colour)
        painter.drawEllipse(spot)
        painter.end()
        marked.addPixmap(pixmap)
    return marked
