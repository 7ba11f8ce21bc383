"""Previews a dataset before training: the process that reads it is waited for in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.draft.draft_checks_controller import DraftChecksController
from app.form.remedies import RemediesFor
from app.new_run.new_run_sheet import NewRunSheet
from app.threads.background import unexpected
from app.threads.bridge import Feed, Send
from app.widgets.notice_bar import Step
from core.errors import ConfigError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.data_preview import preview_data

if TYPE_CHECKING:
    from app.new_run.preview_dialog import PreviewDialog

SHOWN: Final = 5
_log = logging.getLogger(__name__)


class PreviewController(Feed):
    """One dialog, and one look at a time; a new one ends the one before."""

    def __init__(
        self,
        sheet: NewRunSheet,
        drafting: DraftChecksController,
        remedies: RemediesFor,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sheet, self._drafting, self._remedies = sheet, drafting, remedies
        self.dialog: PreviewDialog | None = None
        sheet.data.preview_requested.connect(self._on_preview_requested)

    def _on_preview_requested(self) -> None:
        if self.dialog is not None:
            self.dialog.raise_()
            return
        from app.new_run.preview_dialog import PreviewDialog  # here: the window opens without it

        self.dialog = dialog = PreviewDialog(self._sheet.data.path(), self._sheet.window())
        dialog.finished.connect(self._on_closed)
        dialog.open()
        self.look()

    def _on_closed(self, _result: int) -> None:
        self.dialog = None
        self.close(wait=False)

    def look(self) -> None:
        """Look at the draft's dataset, if the dialog is open."""
        latest, dialog = self._drafting.latest, self.dialog
        if dialog is None:
            return
        if latest is None or latest.preview is None:
            wrong = next(iter(latest.problems.values()), None) if latest is not None else None
            dialog.show_error(
                wrong or ConfigError("", "Some settings are missing or invalid.", "Fix the marked settings.")
            )
            return
        dialog.show_progress("starting")
        run = latest.preview
        self._start("preview", lambda stopping, send: _look(stopping, send, run))

    def _on_item(self, item: object) -> None:
        dialog = self.dialog
        if not isinstance(item, str):
            self.close(wait=False)
        if dialog is None:
            return
        if isinstance(item, str):
            dialog.show_progress(item)
        elif isinstance(item, RankdeckError):
            steps = self._remedies(item)
            dialog.show_error(item, Step(steps[0].label, self._then_look(steps[0].act)) if steps else None)
        elif isinstance(item, dict):
            dialog.show_found(item)

    def _then_look(self, act: Callable[[], None]) -> Callable[[], None]:
        def act_and_look() -> None:
            act()
            self.look()

        return act_and_look


def _look(stopping: threading.Event, send: Send, run: ResolvedRun) -> None:
    """Preview the data in a thread: send the progress, then the result or an error."""

    def progress(text: str) -> None:
        send(text)

    outcome: object
    try:
        outcome = preview_data(
            run.fitted()[0],
            documents=SHOWN,
            limit_s=None,  # the person sees the progress, and can cancel
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
