"""New run's parameter count, memory and time: processes of their own measure the draft's model and time its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.draft.memory_text import (
    INCOMPLETE,
    MEASURING,
    NOT_ESTIMATED,
    MemoryText,
    Timed,
    balance_text,
    memory_text,
    unknown_text,
)
from app.threads.background import Operation, OperationRunner
from app.threads.newest_answer import NewestAnswer
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.machine.devices import DeviceSample
from core.measure.estimate.figures import Baselines, ModelFigures, least_figures
from core.measure.estimate.free import free_now
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.overview import Overview, overview
from core.measure.estimate.probe import find_baselines, find_figures, known_baselines, known_figures
from core.measure.estimate.remedies import remedies
from core.measure.estimate.shape import step_key
from core.measure.estimate.speed import TimeFigures, balance_gain, can_balance
from core.measure.estimate.steps import find_time, known_time, time_is_known, time_key
from core.measure.ranks import CancelledError
from core.recipes.parameter_formula import ModelSize, ParameterCount, depends_on, model_size

# What is free changes by itself; adding up takes a few milliseconds of a worker thread.
FREE_EVERY_MS: Final = 3000
# A probe takes a core for ten seconds: one starts when a draft has stayed the same for two seconds.
REST_S: Final = 2.0
# How soon a newer draft ends that rest.
LOOK_S: Final = 0.1
WHILE_TRAINING: Final = "Steps are timed once no run is training."
_BUSY: Final = "busy"


@dataclass(frozen=True, slots=True)
class Measured:
    """Input of the arithmetic, with the config as the recipe fits it, or the reason why it is missing."""

    config: RunConfig | None = None
    figures: ModelFigures | None = None
    baselines: Baselines | None = None
    error: RankdeckError | None = None


class EstimateController(QObject):
    """Estimates the newest draft, while the sheet is in sight.

    Where the recipe has a formula for its parameters (`core.recipes.parameter_formula`), a first verdict comes at once.
    Once the draft had its rest, a process measures the count, then the memory. Then steps and link are timed.

    Attributes:
        shown: The newest text.

    Args:
        runner: Carries the work out.
        runs_dir: The folder of runs.

    Signals:
        estimated: The `MemoryText`.
        counted: The `ParameterCount`; None while it is not known, and where it cannot be.
    """

    estimated = Signal(object)
    counted = Signal(object)
    _count_found = Signal(str, object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner, self._runs_dir = runner, runs_dir
        self._run: ResolvedRun | None = None
        self.shown: MemoryText = INCOMPLETE
        self.estimated.connect(self._on_estimated)
        self._count_key = self._time_key = ""
        self._counts: dict[str, ParameterCount] = {}
        self._count_found.connect(self._on_count_found, Qt.ConnectionType.QueuedConnection)  # from a worker thread
        self._samples: Sequence[DeviceSample] = ()
        self._is_training = False
        self._models: NewestAnswer[Measured] = NewestAnswer(
            runner,
            lambda _measured: self._add_up(),
            lambda error: Measured(error=error),
            self,
            is_kept=lambda measured: not isinstance(measured.error, CancelledError),
        )
        self._times: NewestAnswer[TimeFigures | None] = NewestAnswer(
            runner, lambda _found: self._add_up(), _without_time, self, is_kept=lambda found: found is not None
        )
        self._again = QTimer(self, interval=FREE_EVERY_MS)
        self._again.timeout.connect(self._add_up)

    @property
    def is_measuring(self) -> bool:
        """Whether a model or steps are measured, or about to be."""
        return self._models.is_asking or self._times.is_asking

    def forget(self) -> None:
        """Drop all answers: packages were installed."""
        self._models.forget()
        self._counts.clear()
        self._times.forget()

    def close(self) -> None:
        """Stop estimating and end running measurements."""
        self._again.stop()
        self._times.close()
        self._models.close()

    def set_watched(self, watched: bool) -> None:
        """Measure and add up only while the strip is in sight."""
        (self._again.start if watched else self._again.stop)()
        self._models.set_watched(watched)
        self._times.set_watched(watched)

    def take_samples(self, samples: Sequence[DeviceSample], *, is_training: bool) -> None:
        """Take over the free memory of GPUs, and whether a run trains: no step is timed then."""
        self._samples, self._is_training = samples, is_training

    def update(self, run: ResolvedRun | None) -> None:
        """Take over a draft; None where a setting is wrong."""
        if run is None or run.recipe.self_contained:
            self._run, self._count_key = None, ""
            self._models.ask("", None)
            self._ask_no_time()
            self.estimated.emit(INCOMPLETE if run is None else NOT_ESTIMATED)
            self.counted.emit(None)
            return
        self._run, key = run, f"{run.recipe.folder} {run.config} {run.batch}"
        self._count_key = f"{run.recipe.folder} {depends_on(run.config)}"
        size = model_size(run.recipe.parameters, run.config)
        known = self._counts.get(self._count_key)
        if size is not None and known is None and size.count.trained:
            known = size.count
        self.counted.emit(known)
        if size is not None and size.count.total * size.weight_bytes > psutil.virtual_memory().total:
            self._models.ask("", None)  # a process could not even build it
        else:
            self._models.ask(key, lambda: self._measure(run, key))
        if self._models.answer is None:
            self._ask_no_time()
            self._show_least(run)

    def _show_least(self, run: ResolvedRun) -> None:
        """Show a first verdict, from the parameters' memory alone."""
        size, count = model_size(run.recipe.parameters, run.config), self._counts.get(self._count_key)
        if count is not None:
            size = ModelSize(count, 4 if size is None else size.weight_bytes)
        if size is None:
            self._say_of(run, MEASURING)
            return
        free = free_now(self._samples, None)
        figures, nothing = least_figures(size, run.world_size), Baselines()
        chosen = estimate_run(run, figures, nothing, free)
        made = Overview(run, figures, free, chosen, (), remedies(run, figures, nothing, free))
        self._say_of(run, memory_text(made))

    def _say_of(self, run: ResolvedRun, text: MemoryText) -> None:
        """Show the estimate before steps are timed."""
        self.estimated.emit(replace(text, balance=balance_text(run, None, self._timed(run))))

    def _timed(self, run: ResolvedRun) -> Timed:
        found = self._times.answer
        if found is not None and all(step_key(device, run) in found.steps for device in run.devices):
            return Timed.YES
        if self._is_training:
            return Timed.WHILE_TRAINING
        return Timed.NOW if self.is_measuring else Timed.NO

    def measure_again(self) -> None:
        """Repeat a measurement that was not possible before."""
        self._ask_no_time()
        self._times.forget()
        if self._models.answer is None or self._models.answer.error is not None:
            self._models.ask_again()
        else:
            self._add_up()

    def _on_estimated(self, text: MemoryText) -> None:
        self.shown = text

    def _measure(self, run: ResolvedRun, key: str) -> Measured:
        """Measure in a worker thread. A newer draft ends it, and a sheet that closes: a started run needs the cores."""

        def cancelled() -> bool:
            return not self._models.is_newest(key)

        count_key = f"{run.recipe.folder} {depends_on(run.config)}"

        def counted(count: ParameterCount) -> None:
            self._count_found.emit(count_key, count)

        run, _ = run.fitted()
        if known_figures(run) is None or known_baselines(run.platform) is None:
            _rest(cancelled)
        figures = find_figures(run, cancelled=cancelled, counted=counted)
        counted(ParameterCount(figures.parameters, figures.trainable))
        return Measured(run.config, figures, find_baselines(run, cancelled=cancelled))

    def _on_count_found(self, key: str, count: ParameterCount) -> None:
        self._counts[key] = count
        if key == self._count_key:
            self.counted.emit(count)
            if self._run is not None and self._models.answer is None:
                self._show_least(self._run)

    def _ask_time(self, run: ResolvedRun, figures: ModelFigures) -> None:
        """Ask for the time of a draft whose memory is known.

        Timed steps would hold up a run that trains, and it would make them slower: they wait,
        and answers from before are dropped.
        """
        is_training = self._is_training
        key = f"{time_key(run)} {_BUSY if is_training else ''}"
        if key == self._time_key:
            return
        if self._time_key.endswith(_BUSY) != is_training:
            self._times.forget()
        self._time_key = key
        answers = self._times
        answers.ask(
            key,
            lambda: find_draft_time(
                run, figures, is_training=is_training, cancelled=lambda: not answers.is_newest(key)
            ),
        )

    def _ask_no_time(self) -> None:
        self._time_key = ""
        self._times.ask("", None)

    def _add_up(self) -> None:
        run, known = self._run, self._models.answer
        if run is None:
            return
        if known is None:
            self._show_least(run)
            return
        if known.config is None or known.figures is None or known.baselines is None:
            if known.error is not None:
                self._say_of(run, unknown_text(known.error))
            return
        fitted, figures, baselines = replace(run, config=known.config), known.figures, known.baselines
        samples, folder = self._samples, self._runs_dir
        self._ask_time(fitted, figures)
        found, is_timing, timed = self._times.answer, self._times.is_asking, self._timed(fitted)

        def work() -> MemoryText:
            made = overview(fitted, figures, baselines, free_now(samples, folder), found)
            text = memory_text(made, is_timing=found is None and is_timing)
            if not can_balance(fitted):
                return text
            gain = None if found is None else balance_gain(fitted, figures, found)
            return replace(text, balance=balance_text(fitted, gain, timed))

        def done(text: MemoryText) -> None:
            if self._run is run:
                self.estimated.emit(text)

        self._runner.run(Operation(work, done, lambda error: done(unknown_text(error)), topic="memory"))


def find_draft_time(
    run: ResolvedRun, figures: ModelFigures, *, is_training: bool, cancelled: Callable[[], bool]
) -> TimeFigures:
    """Time steps and link, after a rest. Blocks; while a run trains, only the known times are read.

    Raises:
        CancelledError: `cancelled` said so.
    """
    is_known = time_is_known(run)
    if is_training:
        found = known_time(run)
        return found if is_known else replace(found, note=WHILE_TRAINING)
    if not is_known:
        _rest(cancelled)
    return find_time(run, figures, cancelled=cancelled)


def _without_time(error: RankdeckError) -> TimeFigures | None:
    """Replace an error by its sentence; by nothing if a newer draft caused it."""
    return None if isinstance(error, CancelledError) else TimeFigures(note=error.cause)


def _rest(cancelled: Callable[[], bool]) -> None:
    """Wait `REST_S`.

    Raises:
        CancelledError: The answer is not wanted any more.
    """
    over = time.monotonic() + REST_S
    while time.monotonic() < over:
        if cancelled():
            raise CancelledError
        time.sleep(LOOK_S)
