"""Draws `resources/icons/app.png` and `app.ico` from `app.svg`: `python -m tests.screenshots.make_app_icon`."""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

ICONS = Path(__file__).resolve().parents[2] / "resources" / "icons"
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


def main() -> None:
    """Writes both files."""
    application = QGuiApplication([])
    (ICONS / "app.png").write_bytes(png(256))
    (ICONS / "app.ico").write_bytes(ico({size: png(size) for size in SIZES}))
    application.quit()


if __name__ == "__main__":
    main()
