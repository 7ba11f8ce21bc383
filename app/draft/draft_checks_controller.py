"""Control of New run's checks as a draft is edited: its problems, the batch arithmetic, the dataset's size."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.draft.draft import CheckedDraft, Draft, check_draft
from app.draft.draft_problems import (
    DatasetSize,
    Problems,
    RecipeAnswer,
    dataset_size,
    folder_problems,
    package_problems,
    recipe_answer,
    script_options,
    script_problems,
)
from app.draft.estimate_controller import EstimateController
from app.draft.mode_options import ModeOptions
from app.threads.background import Operation, OperationRunner
from app.threads.newest_answer import NewestAnswer
from core.config import RunConfig
from core.config.mode import Mode
from core.data.dataset import NO_DATASET, check_size
from core.data.hub import ALLOW_DOWNLOAD, HubName, not_here
from core.data.listing import AUTO
from core.errors import RankdeckError
from core.launch.mode import choose_mode
from core.launch.preflight import MIN_FREE_BYTES, needed_bytes
from core.machine.devices import Device
from core.machine.interpreters import Interpreter, find_interpreters
from core.machine.platform import Platform, this_platform
from core.machines.machine import THERE
from core.recipes.manifest import Recipe
from core.recipes.user_script import RECIPE as USER_SCRIPT

if TYPE_CHECKING:
    from core.machines.answers import Devices

# Looking at a path takes less than asking a process does.
LOOK_AFTER_MS: Final = 200
# Room on the disk is made and used up outside of the window.
ROOM_EVERY_MS: Final = 5_000
# Problems of this computer: a run on another machine, which looks for its own at the start, has none of them.
OF_THIS_COMPUTER: Final = ("packages", "room")


class DraftChecksController(QObject):
    """Checks drafts. The form itself takes three milliseconds; disks and programs are asked in the background.

    Attributes:
        latest: The newest `CheckedDraft`; None before there is one.
        memory: The estimate of the draft.

    Signals:
        checked: ``(CheckedDraft, steps_per_epoch)``; the steps are None while the dataset is not known.
        mode_options_changed: The `ModeOptions` of the mode.
        noted: Notes on the draft, as sentences: they stop nothing.
        interpreters_found: The Pythons that may run a script, the likeliest first.
    """

    checked = Signal(object, object)
    mode_options_changed = Signal(object)
    noted = Signal(object)
    interpreters_found = Signal(object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner, self._runs_dir = runner, runs_dir
        self._platform: Platform | None = None
        self._draft: Draft | None = None
        self._recipe: Recipe | None = None
        self._devices: list[Device] = []
        self._looking = False
        self._machine = ""
        self._there: Devices | None = None
        self._found: dict[str, Problems] = {}
        self._checked_recipe = ""
        self.latest: CheckedDraft | None = None
        self.memory = EstimateController(runner, runs_dir, self)
        self.recipe_check: NewestAnswer[RecipeAnswer] = NewestAnswer(
            runner, self._on_recipe_checked, lambda error: RecipeAnswer({"recipe": error}), self
        )
        self._data: NewestAnswer[DatasetSize | RankdeckError] = NewestAnswer(
            runner, lambda _: self._check(), lambda error: error, self, kept=1, after_ms=LOOK_AFTER_MS, is_watched=True
        )
        self._packages = self._problems_of("packages", "recipe")
        self._script = self._problems_of("script", "script", LOOK_AFTER_MS)
        self._room = self._problems_of("room", "", is_watched=False)
        self._room.ask(str(MIN_FREE_BYTES), functools.partial(folder_problems, runs_dir, MIN_FREE_BYTES))
        self._room_again = QTimer(self, interval=ROOM_EVERY_MS)
        self._room_again.timeout.connect(self._room.ask_again)
        self._interpreters: NewestAnswer[Sequence[Interpreter]] = NewestAnswer(
            runner, self.interpreters_found.emit, lambda _error: (), self, kept=1, is_watched=True
        )
        self._beside: str | None = None

    def _problems_of(
        self, source: str, field: str, after_ms: int = 0, *, is_watched: bool = True
    ) -> NewestAnswer[Problems]:
        """Make a question for problems; an error in asking stands at `field`."""
        take = functools.partial(self._take_problems, source)
        return NewestAnswer(
            self._runner, take, lambda error: {field: error}, self, kept=1, after_ms=after_ms, is_watched=is_watched
        )

    def open(self) -> None:
        """Read this machine's platform; drafts are checked from then on."""
        failed = functools.partial(self._take_problems, "platform")
        self._runner.run(Operation(this_platform, self._on_platform, lambda error: failed({"recipe": error})))

    def close(self) -> None:
        self._room_again.stop()
        for part in (
            self.memory, self.recipe_check, self._data, self._packages, self._script, self._room, self._interpreters,
        ):  # fmt: skip
            part.close()

    def set_watched(self, watched: bool) -> None:
        """Whether the draft is in sight: if not, no process is started for it."""
        self.recipe_check.set_watched(watched)
        self.memory.set_watched(watched)
        self._room.set_watched(watched)
        if watched:
            self._room.ask_again()
            self._room_again.start()
        else:
            self._room_again.stop()

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
        """Take over an edited draft.

        Args:
            draft: The panel's content.
            recipe: The chosen one.
            devices: The ticked ones.
            looking: Devices are still being looked for.
            machine: The name of the devices' machine; empty: this computer.
            there: Its devices and system; None: this computer's.
        """
        self._machine, self._there = machine, there
        self._draft, self._recipe, self._devices, self._looking = draft, recipe, list(devices), looking
        path, rule = draft.dataset, draft.fields.get("data_files") or AUTO
        key = f"{path}\n{rule}"
        if not self._data.is_newest(key):
            self.noted.emit(())  # they count another dataset's documents
            self._data.ask(key, lambda: dataset_size(path, rule, lambda: not self._data.is_newest(key)))
        if recipe is not None:
            self._packages.ask(f"{recipe.folder} {recipe.requires}", functools.partial(package_problems, recipe))
        self._update_script(draft, recipe)
        self._check()

    def _update_script(self, draft: Draft, recipe: Recipe | None) -> None:
        if recipe is None or recipe.name != USER_SCRIPT:
            self._script.ask("", None)
            self._take_problems("script", {})
            return
        options = script_options(draft, recipe)
        self._script.ask(str(options), functools.partial(script_problems, options))
        script = str(options.get("script") or "")
        beside = str(Path(script).parent) if script else ""
        if beside != self._beside:
            self._beside = beside
            self._interpreters.ask(beside, lambda: find_interpreters(Path(script).expanduser() if script else None))

    @property
    def size(self) -> DatasetSize | None:
        """The dataset's size; None while that is not known, and where it cannot be used."""
        found = self._data.answer
        return found if isinstance(found, DatasetSize) else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the devices are another machine's: nothing can be measured with them here."""
        return self._there is not None

    def _take_problems(self, source: str, problems: Problems) -> None:
        """Take over problems by field; they replace those of the same `source`."""
        if problems != self._found.get(source, {}):
            self._found[source] = problems
            self._check()

    def look_again(self) -> None:
        """Read the machine, its packages and the dataset again, after an installation."""
        self.open()
        self.recipe_check.forget()
        self.memory.forget()
        for asked in (self._data, self._packages):
            asked.ask_again()

    def _on_platform(self, platform: Platform) -> None:
        self._platform = platform
        self._check()

    def _check(self) -> None:
        if self._platform is None or self._draft is None or self._recipe is None:
            return
        platform = self._platform if self._there is None else self._there.platform
        checked = check_draft(self._draft, self._recipe, self._devices, platform, looking=self._looking)
        self._publish_mode_options(platform, self._recipe, self._devices)
        planned, size = checked.run, self.size
        wrong_data = self._dataset_problem(checked)
        # It may answer at once, and then checks once more.
        self._ask_recipe(checked, wrong_data)
        known = (found for source, found in self._found.items() if not self._there or source not in OF_THIS_COMPUTER)
        problems = {field: error for by_field in known for field, error in by_field.items()}
        if wrong_data is not None:
            problems["dataset_file"] = wrong_data
        if problems:
            checked = dataclasses.replace(checked, run=None, problems={**problems, **checked.problems}, command="")
        if self._there is not None and checked.command:
            checked = dataclasses.replace(checked, command=f"{checked.command} --machine {self._machine}")
        self.latest = checked
        identity = None if size is None else size.identity
        self.checked.emit(checked, None if identity is None else checked.steps_per_epoch(identity))
        # What fits is known of this computer's devices and disks alone.
        self.memory.update(checked.run if self._there is None else None)
        if planned is not None and self._there is None:
            dataset = 0 if size is None or self._recipe.self_contained else size.size_bytes or 0
            needed = needed_bytes(planned.config, None, dataset)
            self._room.ask(str(needed), functools.partial(folder_problems, self._runs_dir, needed))

    def _dataset_problem(self, checked: CheckedDraft) -> RankdeckError | None:
        """Why the dataset cannot be used, as far as that is known without reading all of it."""
        probe, size = checked.probe, self._data.answer
        if probe is None or probe.config.dataset_file == NO_DATASET:
            return None
        if self._there is not None and probe.config.dataset_file.startswith(THERE):
            return None  # its machine looks at the start
        if not isinstance(size, DatasetSize):
            return size
        try:
            if size.identity is not None:
                check_size(size.identity, probe.config.seq_len)
            if not size.is_here and probe.config.options.get(ALLOW_DOWNLOAD) is not True:
                raise not_here(HubName.parse(size.path))
        except RankdeckError as error:
            return error
        return None

    def _ask_recipe(self, checked: CheckedDraft, wrong_data: RankdeckError | None) -> None:
        """Ask the recipe's own check; earlier problems stay in sight until there is an answer."""
        run, asked, size = checked.probe, self.recipe_check, self.size
        if run is None or self._draft is None:
            asked.ask("", None)
            return
        dataset = size.identity if size is not None and wrong_data is None else None
        can_ask = bool(run.recipe.check or dataset is not None)
        is_other, self._checked_recipe = run.recipe.name != self._checked_recipe, run.recipe.name
        wrong_path = self._draft.dataset if wrong_data is not None else ""
        asked.ask(
            f"{run.recipe.folder} {run.config} {run.batch} {dataset} {wrong_path}",
            functools.partial(recipe_answer, run, dataset) if can_ask else None,
        )
        if asked.answer is None and (is_other or not can_ask or not asked.is_watched):
            self._on_recipe_checked(RecipeAnswer({}))

    def _on_recipe_checked(self, answer: RecipeAnswer) -> None:
        self._take_problems("recipe", answer.problems)
        self.noted.emit(answer.notes)

    def _publish_mode_options(self, platform: Platform, recipe: Recipe, devices: Sequence[Device]) -> None:
        recommended = Mode.DDP
        if len(devices) > 1:
            # Nothing can be recommended; the check itself says why.
            with contextlib.suppress(RankdeckError):
                recommended = choose_mode(RunConfig(), devices, platform).mode
        on_cpu = all(device.kind == "cpu" for device in devices)
        deepspeed = platform.deepspeed_version is not None
        own = recipe.self_contained
        options = ModeOptions(recommended, len(devices), recipe.modes, on_cpu, deepspeed, own)
        self.mode_options_changed.emit(options)
