"""Checks drafts of New run: what is wrong with them, the batch arithmetic, the dataset's size."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.background import Operation, OperationRunner
from app.controllers.disk_room import DiskRoom
from app.controllers.estimating import Estimating
from app.controllers.recipe_check import RecipeCheck
from app.state.draft import CheckedDraft, Draft, check_draft
from app.state.mode_options import ModeOptions
from core.config.mode import Mode
from core.data.dataset import (
    NO_DATASET,
    DatasetIdentity,
    check_packages_for,
    check_size,
    is_hub,
    is_whole_drive,
    list_dataset,
    look_at_beginnings,
)
from core.data.hub import ALLOW_DOWNLOAD, HubName, cached_info, cached_text_bytes, not_here
from core.data.listing import AUTO
from core.errors import DatasetError, RankdeckError
from core.launch.preflight import needed_bytes
from core.launch.resolved import recommended_mode
from core.machine.devices import Device
from core.machine.platform import Platform, this_platform
from core.machines.machine import THERE
from core.recipes.manifest import Recipe

if TYPE_CHECKING:
    from core.machines.answers import Devices

LOOK_AFTER_MS: Final = 200


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """What a path holds, found without reading the files.

    Attributes:
        path: The dataset.
        files: How many files it is; of the Hub's none are counted.
        size_bytes: Their sizes; of the Hub's the text of the copy that is here, None where that is not known.
        identity: The same for checks, without a hash; None for the Hub's.
        is_here: Nothing has to be downloaded.
    """

    path: str
    files: int
    size_bytes: int | None
    identity: DatasetIdentity | None = None
    is_here: bool = True


class Drafting(QObject):
    """Checks drafts as they are edited. The form itself takes three milliseconds; disks are looked at elsewhere.

    Signals:
        checked: ``(CheckedDraft, steps_per_epoch)``; the steps are None while the dataset is not known.
        mode_options_changed: The `ModeOptions` of the mode.
        noted: Notes on the draft, as sentences: they stop nothing.
    """

    checked = Signal(object, object)
    mode_options_changed = Signal(object)
    noted = Signal(object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._platform: Platform | None = None
        self._draft: Draft | None = None
        self._recipe: Recipe | None = None
        self._devices: list[Device] = []
        self._size: DatasetSize | None = None
        self._asked = self._looked_at = ("", "")
        self._is_looking = self._is_closed = False
        self._problem: RankdeckError | None = None
        self._elsewhere: dict[str, dict[str, RankdeckError]] = {}
        self._looking = False
        self._machine = ""
        self._there: Devices | None = None
        self.recipe_check = RecipeCheck(runner, self)
        self.recipe_check.checked.connect(self._on_recipe_checked)
        self.memory = Estimating(runner, runs_dir, self)
        self.room = DiskRoom(runner, runs_dir, self)
        self.room.looked.connect(functools.partial(self.set_problems, "room"))
        self.latest: CheckedDraft | None = None
        self._later = QTimer(self, singleShot=True, interval=LOOK_AFTER_MS)
        self._later.timeout.connect(self._look_at_dataset)

    def open(self) -> None:
        """Finds out about this machine; drafts are checked from then on."""
        self._runner.run(Operation(this_platform, self._on_platform, self._on_no_platform))

    def close(self) -> None:
        """Looks at nothing any more."""
        self._is_closed = True
        self._later.stop()
        self.recipe_check.close()
        self.memory.close()
        self.room.close()

    def set_watched(self, watched: bool) -> None:
        """Whether the draft is in sight: if not, no process is started for it."""
        self.recipe_check.set_watched(watched)
        self.memory.set_watched(watched)
        self.room.set_watched(watched)

    def update(
        self,
        draft: Draft,
        recipe: Recipe | None,
        devices: Sequence[Device],
        *,
        looking: bool = False,
        machine: str = "",
        there: Devices | None = None,
    ) -> None:
        """Takes over an edited draft.

        Args:
            draft: What the panel holds.
            recipe: The chosen one.
            devices: The ticked ones.
            looking: Devices are still being looked for.
            machine: The name of the machine that the devices are on; empty: this computer.
            there: Its devices and system; None: this computer's.
        """
        self._machine, self._there = machine, there
        self._draft, self._recipe, self._devices, self._looking = draft, recipe, list(devices), looking
        asked = (draft.dataset, draft.fields.get("data_files") or AUTO)
        if asked != self._asked:
            self._size = self._problem = None
            self._asked = asked
            self._later.start()
        self._check()

    @property
    def size(self) -> DatasetSize | None:
        """What the dataset is found to be; None while that is not known, and where it cannot be used."""
        return self._size

    @property
    def is_elsewhere(self) -> bool:
        """The devices are another machine's: nothing can be measured with them here."""
        return self._there is not None

    def _is_about_here(self, source: str) -> bool:
        """Problems of this computer are none of a run on another machine, which looks for its own at the start."""
        return self._there is not None and source in ("packages", "room")

    def set_problems(self, source: str, problems: Mapping[str, RankdeckError]) -> None:
        """Takes over problems that another check found on disk, by field; replaces those of the same `source`."""
        if problems != self._elsewhere.get(source, {}):
            self._elsewhere[source] = dict(problems)
            self._check()

    def look_again(self) -> None:
        """Finds out about this machine and the dataset again, after an installation."""
        self._problem, self._looked_at = None, ("", "")
        self.open()
        self.recipe_check.forget()
        self.memory.forget()
        self._later.start()

    def _on_platform(self, platform: Platform) -> None:
        self._platform = platform
        self._check()

    def _on_no_platform(self, error: RankdeckError) -> None:
        self._problem = error
        self._check()

    def _check(self) -> None:
        if self._platform is None or self._draft is None or self._recipe is None:
            return
        platform = self._platform if self._there is None else self._there.platform
        checked = check_draft(self._draft, self._recipe, self._devices, platform, looking=self._looking)
        self._publish_mode_options(platform, self._recipe, self._devices * checked.machines)
        planned = checked.run
        wrong_data = self._dataset_problem(checked)
        usable = self._size.identity if self._size is not None and wrong_data is None else None
        # It may answer at once, and then checks once more.
        self.recipe_check.update(checked.probe, usable, self._draft.dataset if wrong_data is not None else "")
        known = {source: found for source, found in self._elsewhere.items() if not self._is_about_here(source)}
        found = {field: error for by_field in known.values() for field, error in by_field.items()}
        if wrong_data is not None:
            found["dataset_file"] = wrong_data
        if found:
            problems = {**found, **checked.problems}
            checked = dataclasses.replace(checked, run=None, problems=problems, command="")
        if self._there is not None and checked.command:
            checked = dataclasses.replace(checked, command=f"{checked.command} --machine {self._machine}")
        self.latest = checked
        size = None if self._size is None else self._size.size_bytes
        identity = None if self._size is None else self._size.identity
        steps = None if identity is None else checked.steps_per_epoch(identity)
        self.checked.emit(checked, steps)
        # What fits is known of this computer's devices and disks alone.
        self.memory.update(checked.run if self._there is None else None, checked.machines)
        if planned is not None and self._there is None:
            dataset = 0 if self._recipe.self_contained else size or 0
            self.room.update(needed_bytes(planned.config, None, dataset))

    def _dataset_problem(self, checked: CheckedDraft) -> RankdeckError | None:
        """Why the dataset cannot be used, as far as that is known without reading all of it."""
        probe = checked.probe
        if probe is None or probe.config.dataset_file == NO_DATASET:
            return None
        if self._there is not None and probe.config.dataset_file.startswith(THERE):
            return None  # its machine looks at the start
        if self._problem is not None or self._size is None:
            return self._problem
        try:
            if self._size.identity is not None:
                check_size(self._size.identity, probe.config.seq_len)
            if not self._size.is_here and probe.config.options.get(ALLOW_DOWNLOAD) is not True:
                raise not_here(HubName.parse(self._size.path))
        except RankdeckError as error:
            return error
        return None

    def _on_recipe_checked(self, problems: Mapping[str, RankdeckError], notes: Sequence[str]) -> None:
        self.set_problems("recipe", problems)
        self.noted.emit(notes)

    def _publish_mode_options(self, platform: Platform, recipe: Recipe, devices: Sequence[Device]) -> None:
        recommended = Mode.DDP
        if len(devices) > 1:
            with contextlib.suppress(RankdeckError):  # nothing can be recommended; the check itself says why
                recommended = recommended_mode(devices, platform)
        on_cpu = all(device.kind == "cpu" for device in devices)
        deepspeed = platform.deepspeed_version is not None
        own = recipe.self_contained
        options = ModeOptions(recommended, len(devices), recipe.modes, on_cpu, deepspeed, own)
        self.mode_options_changed.emit(options)

    def _look_at_dataset(self) -> None:
        """Looks at one path at a time: each letter of one is a path too, perhaps of a slow network drive."""
        if self._is_looking:
            return
        self._is_looking, asked = True, self._asked
        self._looked_at, (path, rule) = asked, asked

        def work() -> DatasetSize:
            if is_whole_drive(path):
                raise DatasetError(
                    f"{path} is a whole drive.",
                    "Choose a folder in it, or a file.",
                    title="The dataset is a whole drive",
                )
            listing = list_dataset(path, rule, lambda: self._asked != asked or self._is_closed)
            check_packages_for(path, listing.files)
            if is_hub(path):
                name = HubName.parse(path)
                return DatasetSize(path, 0, cached_text_bytes(name), is_here=cached_info(name) is not None)
            found = look_at_beginnings(path, listing)
            return DatasetSize(path, found.files, found.size_bytes, found)

        self._runner.run(Operation(work, self._on_size, self._on_no_dataset))

    def _on_size(self, size: DatasetSize) -> None:
        self._on_looked(size, None)

    def _on_no_dataset(self, error: RankdeckError) -> None:
        self._on_looked(None, error)

    def _on_looked(self, size: DatasetSize | None, problem: RankdeckError | None) -> None:
        self._is_looking = False
        if self._looked_at != self._asked:  # edited meanwhile: what was found is of another path
            self._later.start()
            return
        self._size, self._problem = size, problem
        self._check()
