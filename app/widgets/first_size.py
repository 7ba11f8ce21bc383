"""First size of a window or dialog, which a small screen may have no room for."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QDialog, QWidget

# A title bar, as high as the one of Windows 11.
FRAME: Final = 32


def set_first_size(dialog: QDialog, width: int, height: int) -> None:
    """Makes a dialog so large, or as large as its screen has room for beside the task bar."""
    dialog.resize(QSize(width, height).boundedTo(room_for(dialog)))


def room_for(window: QWidget) -> QSize:
    """How large a window can be on its screen, beside the task bar and below its own title bar."""
    return (window.parentWidget() or window).screen().availableSize() - QSize(0, FRAME)
