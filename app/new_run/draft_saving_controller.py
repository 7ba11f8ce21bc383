"""Saves drafts of New run as they are edited: a window that is killed loses nothing that was set."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer

from app.draft.draft import Draft
from app.settings import Settings

if TYPE_CHECKING:
    from app.new_run.new_run_sheet import NewRunSheet

SAVE_AFTER_MS: Final = 400
CURRENT: Final = "draft"
OTHERS: Final = "drafts"


class DraftSavingController(QObject):
    """Writes the draft in sight, and those of other recipes, soon after each edit."""

    def __init__(self, sheet: NewRunSheet, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sheet = sheet
        self._settings = settings
        self._later = QTimer(self, singleShot=True, interval=SAVE_AFTER_MS)
        self._later.timeout.connect(self.save)

    def open(self) -> None:
        """Show the saved drafts, and save edits from then on."""
        sheet, saved = self._sheet, self._settings.values(CURRENT)
        others = self._settings.values(OTHERS)
        for name, values in others.items():
            if isinstance(values, dict):
                sheet.drafts[name] = dataclasses.replace(Draft.from_dict(values), recipe=name)
        if saved:
            draft = Draft.from_dict(saved)
            sheet.open_draft(draft, keep_devices=not draft.devices)
        sheet.draft_changed.connect(self._later.start)

    def save(self) -> None:
        """Write the drafts. QSettings brings them to the disk when the event loop is idle."""
        self._later.stop()
        sheet = self._sheet
        wished = dataclasses.replace(sheet.draft(), devices=tuple(sheet.devices.wished()))
        self._settings.set_values(CURRENT, dataclasses.asdict(wished))
        self._settings.set_values(OTHERS, {name: dataclasses.asdict(kept) for name, kept in sheet.drafts.items()})
