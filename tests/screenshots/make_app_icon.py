"""Draws what is made of `resources/icons/app.svg`: `python -m tests.screenshots.make_app_icon`.

These are `app.png`, `app.ico`, and `installer/windows/welcome.bmp`, the picture of the installer's first and last page.
"""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QPainterPath, QPen
from PySide6.QtSvg import QSvgRenderer

from tests.screenshots.make_screenshots import few_colours

ICONS = Path(__file__).resolve().parents[2] / "resources" / "icons"
WELCOME = ICONS.parents[1] / "installer" / "windows" / "welcome.bmp"
# Twice NSIS's own, for screens at 200 %.
WELCOME_SIZE = (328, 628)
GROUND, AXIS = QColor("#12324a"), QColor("#2f5671")
# Colours of the icon's two curves, and where each begins.
CURVES = ((QColor("#e69f00"), 236), (QColor("#56b4e9"), 300))
SIZES = (16, 20, 24, 32, 40, 48, 64, 128, 256)


def png(size: int) -> bytes:
    """The icon as a PNG of `size` pixels."""
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(ICONS / "app.svg")).render(painter, QRectF(0, 0, size, size))
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(data.data())


def ico(pictures: dict[int, bytes]) -> bytes:
    """An icon file: a directory of 16-byte entries, then the PNGs (Windows reads those since Vista)."""
    offset = 6 + 16 * len(pictures)
    entries, body = b"", b""
    for size, data in pictures.items():
        side = size % 256  # 0 stands for 256
        entries += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(data), offset + len(body))
        body += data
    return struct.pack("<HHH", 0, 1, len(pictures)) + entries + body


def welcome() -> QImage:
    """The icon's curves on its ground, in 256 colours, as an installer's page has room for them."""
    width, height = WELCOME_SIZE
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(GROUND)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(AXIS, 10, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawLine(48, 520, width - 48, 520)
    for colour, top in CURVES:
        curve = QPainterPath(QPointF(48, top))
        curve.cubicTo(80, top + 130, 150, 440, width - 56, 444)
        painter.setPen(QPen(colour, 10, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPath(curve)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.white)
    painter.drawEllipse(QPointF(width - 56, 444), 12, 12)
    painter.end()
    return few_colours(image)


def main() -> None:
    """Writes the files."""
    application = QGuiApplication([])
    (ICONS / "app.png").write_bytes(png(256))
    (ICONS / "app.ico").write_bytes(ico({size: png(size) for size in SIZES}))
    welcome().save(str(WELCOME))
    application.quit()


if __name__ == "__main__":
    main()
