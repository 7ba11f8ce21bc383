"""Settings of the window: theme, smoothing, and the folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QPushButton,
    QRadioButton,
    QWidget,
)

from app.views.plots.curve_controls import SmoothingSlider
from app.views.style.theme import THEMES
from app.views.widgets.build import bold_label, lay_column, lay_row, muted_label
from app.views.widgets.elided_label import ElidedLabel

WIDTH: Final = 460


class SettingsDialog(QDialog):
    """Each change has its effect at once; *Close* is all there is to press.

    Args:
        theme: "system", "light" or "dark".
        smoothing: As in `CurveOptions`.
        runs_dir: The folder of runs.

    Signals:
        theme_chosen: Another theme.
        smoothing_chosen: Another strength for all charts.
        folder_requested: The folder of runs is to be opened.
    """

    theme_chosen = Signal(str)
    smoothing_chosen = Signal(int)
    folder_requested = Signal()

    def __init__(self, theme: str, smoothing: int, runs_dir: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Settings")
        self.themes = {name: QRadioButton(label) for name, label in THEMES.items()}
        group = QButtonGroup(self)
        row = QHBoxLayout()
        row.setSpacing(16)
        for name, radio in self.themes.items():
            group.addButton(radio)
            radio.setChecked(name == theme)
            radio.setAccessibleName(f"Theme: {THEMES[name].replace('&', '')}")
            radio.toggled.connect(lambda on, name=name: self.theme_chosen.emit(name) if on else None)
            row.addWidget(radio)
        row.addStretch(1)
        self.smoothing = SmoothingSlider(smoothing)
        self.smoothing.strength_changed.connect(self.smoothing_chosen)
        self.folder = ElidedLabel()
        self.folder.set_full_text(str(runs_dir))
        self.open_folder = QPushButton("&Open")
        self.open_folder.setAutoDefault(False)
        self.open_folder.setAccessibleName("Open the folder of runs")
        self.open_folder.clicked.connect(self.folder_requested)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        lay_column(
            self,
            bold_label("Theme"),
            row,
            bold_label("Charts"),
            lay_row(None, self.smoothing, None),
            bold_label("Folder of runs"),
            lay_row(None, self.folder, self.open_folder, spacing=8, grow=self.folder),
            muted_label("The variable RANKDECK_HOME sets another folder."),
            None,
            buttons,
            spacing=10,
            margins=(16, 16, 16, 16),
        )
        self.setMinimumWidth(WIDTH)
