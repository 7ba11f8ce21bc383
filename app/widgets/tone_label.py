"""Labels in a colour of the theme: a sentence, a sign."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QLabel, QWidget

from app.style.icons import icon
from app.style.tones import tone


def show_in_tone(widget: QWidget, role: QPalette.ColorRole, tone_name: str) -> None:
    """Colour a widget's text; called again when the theme has changed."""
    colour = tone(QGuiApplication.palette(), tone_name)
    if widget.palette().color(role) != colour:  # setting it comes back as a change
        palette = QPalette()
        palette.setColor(role, colour)
        widget.setPalette(palette)


class ToneLabel(QLabel):
    """A sentence in the theme's error or warning colour; hidden while it is empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._tone = "error"
        self._colour()
        self.hide()

    def say(self, text: str, tone_name: str) -> None:
        self._tone = tone_name
        self._colour()
        self.setText(text)
        self.setVisible(bool(text))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        show_in_tone(self, QPalette.ColorRole.WindowText, self._tone)


class SignLabel(QLabel):
    """An icon in a tone, drawn again when the theme changes; empty at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.setFixedSize(size, size)
        self._sign = self._tone = ""

    def show_sign(self, sign: str, tone_name: str) -> None:
        self._sign, self._tone = sign, tone_name
        self.setPixmap(icon(sign, tone_name).pixmap(self._size, self._size))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange and self._sign:
            self.show_sign(self._sign, self._tone)
        super().changeEvent(event)
