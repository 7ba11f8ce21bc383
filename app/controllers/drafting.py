"""Keeps what stands under the form current: what is wrong, the arithmetic, the dataset's size."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.operation import Operation, OperationRunner
from app.models.draft import CheckedDraft, Draft, check_draft
from core.config.run_config import RunConfig
from core.dataset import list_files
from core.devices import Device
from core.errors import RankdeckError
from core.launch_plan import resolve_mode
from core.platforms import Platform, this_platform
from core.recipes import Recipe

LOOK_AFTER_MS: Final = 200


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """What a path holds, found without reading the files."""

    path: str
    files: int
    size_bytes: int


class Drafting(QObject):
    """Checks drafts as they are edited. The form itself takes well under a millisecond; disks are looked at elsewhere.

    Signals:
        checked: ``(CheckedDraft, steps_per_epoch)``; the steps are None while the dataset is not known.
        surroundings_changed: ``(recommended mode, ranks, modes of the recipe)``.
        dataset_found: A `DatasetSize`.
        dataset_failed: Why the dataset cannot be used.
    """

    checked = Signal(object, object)
    surroundings_changed = Signal(str, int, object)
    dataset_found = Signal(object)
    dataset_failed = Signal(object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._platform: Platform | None = None
        self._draft: Draft | None = None
        self._recipe: Recipe | None = None
        self._devices: list[Device] = []
        self._size: DatasetSize | None = None
        self._asked = ""
        self._problem: RankdeckError | None = None
        self.latest: CheckedDraft | None = None
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(LOOK_AFTER_MS)
        self._later.timeout.connect(self._look_at_dataset)

    def open(self) -> None:
        """Finds out about this machine; drafts are checked from then on."""
        self._runner.run(Operation(this_platform, self._on_platform, self.dataset_failed.emit))

    def close(self) -> None:
        """Looks at nothing any more."""
        self._later.stop()

    def update(self, draft: Draft, recipe: Recipe | None, devices: Sequence[Device]) -> None:
        """Takes over an edited draft."""
        self._draft, self._recipe, self._devices = draft, recipe, list(devices)
        if draft.dataset != self._asked:
            self._size = self._problem = None
            self._asked = draft.dataset
            self._later.start()
        self._check()

    def _on_platform(self, platform: Platform) -> None:
        self._platform = platform
        self._check()

    def _check(self) -> None:
        if self._platform is None or self._draft is None or self._recipe is None:
            return
        self._say_surroundings(self._platform, self._recipe)
        checked = check_draft(self._draft, self._recipe, self._devices, self._platform)
        if self._problem is not None:
            problems = {**checked.problems, "dataset_file": self._problem}
            checked = dataclasses.replace(checked, config=None, problems=problems, command="")
        self.latest = checked
        steps = None if self._size is None else checked.steps_per_epoch(self._size.size_bytes, len(self._devices))
        self.checked.emit(checked, steps)

    def _say_surroundings(self, platform: Platform, recipe: Recipe) -> None:
        recommended = "ddp"
        if len(self._devices) > 1:
            with contextlib.suppress(RankdeckError):  # nothing can be recommended; the check itself says why
                recommended = resolve_mode(RunConfig(), self._devices, platform)
        self.surroundings_changed.emit(recommended, len(self._devices), recipe.modes)

    def _look_at_dataset(self) -> None:
        path = self._asked

        def work() -> DatasetSize:
            files = list_files(path)
            return DatasetSize(path, len(files), sum(file.stat().st_size for file in files))

        self._runner.run(Operation(work, self._on_size, self._on_no_dataset, topic="dataset"))

    def _on_size(self, size: DatasetSize) -> None:
        self._size, self._problem = size, None
        self.dataset_found.emit(size)
        self._check()

    def _on_no_dataset(self, error: RankdeckError) -> None:
        self._size, self._problem = None, error
        self.dataset_failed.emit(error)
        self._check()
