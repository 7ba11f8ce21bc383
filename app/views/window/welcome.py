"""Welcome, shown while no run is selected: what Start will do, and a button that does it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.views.style.icons import app_icon
from app.views.widgets.build import muted_label

ICON_PX = 64
PLAN_WIDTH = 400


class Welcome(QWidget):
    """One sentence on what the next run is, and the Start button."""

    def __init__(self, start: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        sign = QLabel()
        sign.setPixmap(app_icon().pixmap(ICON_PX, ICON_PX))
        title = QLabel("Start a run, or choose one on the left.")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        title.setFont(font)
        self.plan = muted_label()
        self.plan.setFixedWidth(PLAN_WIDTH)
        self.button = QPushButton()
        self.button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.button.setMinimumSize(112, 32)
        self.button.clicked.connect(start.trigger)
        self._start = start
        start.changed.connect(self._on_start_changed)
        self._on_start_changed()
        column = QVBoxLayout(self)
        column.setSpacing(12)
        column.addStretch(2)
        for widget in (sign, title, self.plan, self.button):
            if isinstance(widget, QLabel):
                widget.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)

    def _on_start_changed(self) -> None:
        self.button.setText(self._start.text())
        self.button.setIcon(self._start.icon())
        self.button.setEnabled(self._start.isEnabled())
        self.button.setToolTip(self._start.toolTip())

    def show_plan(self, plan: str) -> None:
        """What pressing Start will do."""
        self.plan.setText(plan)
        # Wrapped and centred, a label asks for the height of one line only.
        self.plan.setFixedHeight(max(1, self.plan.heightForWidth(PLAN_WIDTH)))
