"""Previews a dataset before training: the process that looks at it is waited for in a thread, and can be cancelled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from app.draft.draft_checks_controller import DraftChecksController
from app.new_run.new_run_sheet import NewRunSheet
from app.threads.background import unexpected
from app.threads.bridge import Feed, Send
from app.widgets.notice_bar import Step
from core.data.formats import TEXT_COLUMN
from core.data.hub import ALLOW_DOWNLOAD, DownloadNeededError
from core.errors import ConfigError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.machine.packages import MissingPackageError
from core.measure.data_preview import preview_data

if TYPE_CHECKING:
    from app.new_run.preview_dialog import PreviewDialog

SHOWN: Final = 5
_log = logging.getLogger(__name__)


class PreviewController(Feed):
    """One dialog, and one look at a time; a new one ends the one before.

    Signals:
        found: What `core.measure.data_preview.preview_data` gives.
    """

    found = Signal(object)

    def __init__(
        self,
        sheet: NewRunSheet,
        drafting: DraftChecksController,
        install_step: Callable[[MissingPackageError], Step],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sheet, self._drafting, self._install_step = sheet, drafting, install_step
        self.dialog: PreviewDialog | None = None
        sheet.data.preview_requested.connect(self._on_preview_requested)

    def _on_preview_requested(self) -> None:
        if self.dialog is not None:
            self.dialog.raise_()
            return
        from app.new_run.preview_dialog import PreviewDialog  # here: the window opens without it

        self.dialog = dialog = PreviewDialog(self._sheet.data.path(), self._sheet.window())
        dialog.look_requested.connect(self.look)
        dialog.cancel_requested.connect(lambda: self.close(wait=False))
        dialog.column_chosen.connect(lambda name: self._set_and_look(TEXT_COLUMN, name))
        dialog.finished.connect(self._on_closed)
        dialog.open()
        self.look()

    def _on_closed(self, _result: int) -> None:
        self.dialog = None

    def look(self, read_all: bool = False) -> None:
        """Looks at the draft's dataset, if the dialog is open; `read_all` makes all tokens, and keeps them."""
        latest, dialog = self._drafting.latest, self.dialog
        if dialog is None:
            return
        if latest is None or latest.preview is None:
            wrong = next(iter(latest.problems.values()), None) if latest is not None else None
            dialog.show_error(
                wrong or ConfigError("", "Some settings are missing or invalid.", "Fix the marked settings.")
            )
            return
        dialog.set_can_choose(TEXT_COLUMN in self._sheet.form.rows)
        dialog.show_looking()
        run = latest.preview
        self._start("preview", lambda stopping, send: _look(stopping, send, run, read_all))

    def _set_and_look(self, field: str, text: str) -> None:
        self._sheet.set_field(field, text)
        self.look()

    def _on_item(self, item: object) -> None:
        dialog = self.dialog
        if not isinstance(item, str):
            self.close(wait=False)
        if dialog is None:
            return
        if isinstance(item, str):
            dialog.show_progress(item)
        elif isinstance(item, RankdeckError):
            dialog.show_error(item, self._step_after(item))
        elif isinstance(item, dict):
            dialog.show_found(item)
            self.found.emit(item)

    def _step_after(self, error: RankdeckError) -> Step | None:
        """The button that does what an error's next step says, where one can."""
        names = self._sheet.form.rows
        if isinstance(error, MissingPackageError):
            return self._install_step(error)
        if isinstance(error, DownloadNeededError) and ALLOW_DOWNLOAD in names:
            return Step("Allow the &download", lambda: self._set_and_look(ALLOW_DOWNLOAD, "true"))
        if isinstance(error, ConfigError) and error.field == TEXT_COLUMN and TEXT_COLUMN in names:
            return Step("&Guess the column", lambda: self._set_and_look(TEXT_COLUMN, ""))
        return None


def _look(stopping: threading.Event, send: Send, run: ResolvedRun, read_all: bool) -> None:
    """In a thread: sends how far it is, and then what it found or why there is nothing to show."""

    def progress(text: str) -> None:
        send(text)

    outcome: object
    try:
        outcome = preview_data(
            run.fitted()[0],
            documents=SHOWN,
            read_all=read_all,
            limit_s=None,  # the person sees how far it is, and can cancel
            progress=progress,
            cancelled=stopping.is_set,
        )
    except RankdeckError as error:
        outcome = error
    except Exception as error:
        _log.exception("the preview failed")
        outcome = unexpected(error)
    if not stopping.is_set():
        send(outcome)
