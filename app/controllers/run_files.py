"""Opens a run's folder and the documentation, and reports on exports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from app.controllers.export import Exporting
from app.controllers.shown_run import Showing
from app.views.widgets.notice_bar import Step
from app.views.window.main_window import MainWindow
from core.export.kinds import KINDS

if TYPE_CHECKING:
    from core.export.export import Exported

HELP: Final = Path(__file__).resolve().parents[2] / "README.md"


class RunFiles(QObject):
    """Carries out the window's actions on the shown run's files."""

    def __init__(
        self, window: MainWindow, showing: Showing, exporting: Exporting, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._showing = showing
        self._exporting = exporting
        window.folder_requested.connect(self._on_folder_requested)
        window.help_requested.connect(self._on_help_requested)
        window.export_requested.connect(self._on_export_requested)
        exporting.begun.connect(self._on_export_begun)
        exporting.exported.connect(self._on_exported)
        exporting.failed.connect(window.show_error)

    def _on_folder_requested(self) -> None:
        if self._showing.run_dir is not None:
            open_path(self._showing.run_dir)

    def _on_help_requested(self) -> None:
        open_path(HELP)

    def _on_export_requested(self, kind: str) -> None:
        if self._showing.run_dir is not None:
            self._exporting.export(self._showing.run_dir, kind)

    def _on_export_begun(self, run_dir: Path, kind: str) -> None:
        self._window.notice.say("info", f"Exporting {run_dir.name}", f"{KINDS[kind]} …")

    def _on_exported(self, run_dir: Path, made: Exported) -> None:
        folder = made.path if made.path.is_dir() else made.path.parent
        text = "\n".join((str(made.path), *made.details))
        step = Step("Open &folder", lambda: open_path(folder))
        self._window.notice.say("success", f"Exported {run_dir.name}: {KINDS[made.kind]}", text, step)


def open_path(path: Path) -> None:
    """Opens a file or folder with the program that the desktop has for it."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
