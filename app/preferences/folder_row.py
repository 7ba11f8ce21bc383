"""A row of *Settings* for a folder that Rankdeck keeps something in: shows it, opens it, and lets another be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget

from app.widgets.build import lay_column, lay_row, muted_label
from app.widgets.elided_label import ElidedLabel


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """Where something is kept.

    Attributes:
        title: What: "Runs".
        folder: Used now.
        note: What should be known of it.
        coming: Used from the next start; None: the same.
        fixed_by: A variable of the environment that sets it; empty where it can be chosen.
    """

    title: str
    folder: Path
    note: str
    coming: Path | None = None
    fixed_by: str = ""


class FolderRow(QWidget):
    """One such folder.

    Args:
        kept: What is shown.
        waits: Another folder is used from the next start only, not at once.

    Signals:
        chosen: Another folder.
        opened: The folder that is used now, to be opened.
        resized: A note has changed, which may take more lines.
    """

    chosen = Signal(object)
    opened = Signal(object)
    resized = Signal()

    def __init__(self, kept: KeptFolder, *, waits: bool = False) -> None:
        super().__init__()
        self._kept, self._waits = kept, waits
        self.path = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self.path.setAccessibleName(f"Folder of {kept.title.lower()}")
        self.open = _button("Open", f"Open the folder of {kept.title.lower()}")
        self.open.clicked.connect(lambda: self.opened.emit(self._kept.folder))
        self.change = _button("Change…", f"Choose another folder of {kept.title.lower()}")
        self.change.clicked.connect(self._on_change_clicked)
        self.note = muted_label()
        row = QWidget()
        lay_row(row, self.path, self.open, self.change, spacing=8, grow=self.path)
        lay_column(self, row, self.note, spacing=2)
        if kept.fixed_by:
            self.change.setEnabled(False)
            self.change.setToolTip(f"Unavailable: {_fixed(kept.fixed_by)}")
        self._show(kept.coming or kept.folder)

    def _show(self, folder: Path) -> None:
        self.path.set_full_text(f"{self._kept.title}: {folder}")
        note = self._kept.note
        if self._kept.fixed_by:
            note = _fixed(self._kept.fixed_by)
        elif self._waits and folder != self._kept.folder:
            now = self._kept.folder
            note = f"Used from the next start of Rankdeck. Until then {now} is used; what is there stays there."
        self.note.setText(note)

    def _on_change_clicked(self) -> None:
        dialog = QFileDialog(self, f"Folder of {self._kept.title.lower()}", str(self._kept.folder))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_selected)
        dialog.open()

    def _on_selected(self, path: str) -> None:
        folder = Path(path).absolute()
        self._show(folder)
        self.resized.emit()
        self.chosen.emit(folder)


def _fixed(variable: str) -> str:
    return f"The variable {variable} sets this folder. Remove it to choose another one here."


def _button(text: str, name: str) -> QPushButton:
    button = QPushButton(text)
    button.setAutoDefault(False)
    button.setAccessibleName(name)
    return button
