"""Room on the disk for a run, looked at before Start: while the sheet is in sight, again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.background import Operation, OperationRunner
from app.state.draft import RUNS_DIR
from core.errors import RankdeckError
from core.launch.preflight import MIN_FREE_BYTES, check_folder

LOOK_EVERY_MS: Final = 5_000
"""Room is made and used up outside of the window."""


class DiskRoom(QObject):
    """Says what is wrong with the folder of runs: no room, no permission, no drive.

    Signals:
        looked: ``{RUNS_DIR: RankdeckError}``; empty where a run can be written.
    """

    looked = Signal(object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner, self._runs_dir = runner, runs_dir
        self._needed_bytes = MIN_FREE_BYTES
        self._again = QTimer(self, interval=LOOK_EVERY_MS)
        self._again.timeout.connect(self._look)

    def close(self) -> None:
        """Looks no more."""
        self._again.stop()

    def set_watched(self, watched: bool) -> None:
        """Whether the sheet is in sight."""
        if watched:
            self._again.start()
            self._look()
        else:
            self._again.stop()

    def update(self, needed_bytes: int) -> None:
        """Takes over what another draft needs (`core.launch.preflight.needed_bytes`)."""
        if needed_bytes != self._needed_bytes:
            self._needed_bytes = needed_bytes
            if self._again.isActive():
                self._look()

    def _look(self) -> None:
        runs_dir, needed = self._runs_dir, self._needed_bytes

        def work() -> dict[str, RankdeckError]:
            check_folder(runs_dir, needed)
            return {}

        def refused(error: RankdeckError) -> None:
            self.looked.emit({RUNS_DIR: error})

        self._runner.run(Operation(work, self.looked.emit, refused, topic="room"))
