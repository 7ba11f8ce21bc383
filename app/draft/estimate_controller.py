"""New run's parameter count and memory strip: a process of its own counts and measures the draft's model."""

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
from app.draft.timing_controller import TimingController
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
from core.measure.estimate.prices import read_prices
from core.measure.estimate.probe import find_baselines, find_figures, known_baselines, known_figures
from core.measure.estimate.remedies import remedies
from core.measure.estimate.shape import step_key
from core.measure.estimate.speed import balance_gain, can_balance
from core.measure.estimate.steps import past_balance_gain
from core.measure.ranks import CancelledError
from core.recipes.parameter_count import ParameterCount, depends_on
from core.recipes.parameter_formula import ModelSize, model_size

# What is free changes by itself; adding up takes a few milliseconds of a worker thread.
FREE_EVERY_MS: Final = 3000
# A probe takes a core for ten seconds: one starts when a draft has stayed the same for two seconds.
REST_S: Final = 2.0
# How soon a newer draft ends that rest.
LOOK_S: Final = 0.1
# Parameter counts of drafts before, so that going back to one costs nothing.
_KEPT: Final = 32


@dataclass(frozen=True, slots=True)
class Measured:
    """Input of the arithmetic, or the reason why it is missing.

    Attributes:
        config: As the recipe's check fits it.
    """

    config: RunConfig | None = None
    figures: ModelFigures | None = None
    baselines: Baselines | None = None
    error: RankdeckError | None = None


class EstimateController(QObject):
    """The parameter count and the memory of the newest draft, while the sheet is in sight.

    Where the recipe says how large its model is (`core.recipes.parameter_formula`), a first verdict comes at once.
    One process finds out the rest: the count within a second, and all of it once the draft had its rest.

    Attributes:
        shown: The newest text.

    Args:
        runner: Carries the work out.
        runs_dir: Where the run's folder will be.

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
        self._key = self._count_key = ""
        self._counts: dict[str, ParameterCount] = {}
        self._count_found.connect(self._on_count_found, Qt.ConnectionType.QueuedConnection)  # from a worker thread
        self._samples: Sequence[DeviceSample] = ()
        self._is_training = False
        self._answers: NewestAnswer[Measured] = NewestAnswer(
            runner,
            lambda _measured: self._add_up(),
            lambda error: Measured(error=error),
            self,
            is_kept=lambda measured: not isinstance(measured.error, CancelledError),
        )
        self.timing = TimingController(runner, runs_dir, self._add_up, _rest, self)
        self._again = QTimer(self, interval=FREE_EVERY_MS)
        self._again.timeout.connect(self._add_up)

    @property
    def is_measuring(self) -> bool:
        """A model is measured, or about to be."""
        return self._answers.is_asking or self.timing.is_measuring

    def forget(self) -> None:
        """Asks again whatever was answered: packages were installed."""
        self._answers.forget()
        self._counts.clear()
        self.timing.forget()

    def close(self) -> None:
        """Stops estimating and ends running measurements."""
        self._key = ""
        self._again.stop()
        self.timing.close()
        self._answers.close()

    def set_watched(self, watched: bool) -> None:
        """Whether the strip is in sight: if not, nothing is measured and added up for it."""
        (self._again.start if watched else self._again.stop)()
        self._answers.set_watched(watched)
        self.timing.set_watched(watched)

    def take_samples(self, samples: Sequence[DeviceSample], *, is_training: bool) -> None:
        """Takes over what is free on GPUs, and whether a run trains: no step is timed then."""
        self._samples, self._is_training = samples, is_training

    def update(self, run: ResolvedRun | None) -> None:
        """Takes over a draft; None where a setting is wrong."""
        if run is None or run.recipe.self_contained:
            self._run, self._key, self._count_key = None, "", ""
            self._answers.ask("", None)
            self.timing.update(None)
            self.estimated.emit(INCOMPLETE if run is None else NOT_ESTIMATED)
            self.counted.emit(None)
            return
        self._run, key = run, f"{run.recipe.folder} {run.config} {run.batch}"
        self._key, self._count_key = key, f"{run.recipe.folder} {depends_on(run.config)}"
        size = model_size(run.recipe.parameters, run.config)
        known = self._counts.get(self._count_key)
        if size is not None and known is None and size.count.trained:
            known = size.count
        self.counted.emit(known)
        if size is not None and size.count.total * size.weight_bytes > psutil.virtual_memory().total:
            self._answers.ask("", None)  # a process could not even build it
        else:
            self._answers.ask(key, lambda: self._measure(run, key))
        if self._answers.answer is None:
            self.timing.update(None)
            self._show_least(run)

    def _show_least(self, run: ResolvedRun) -> None:
        """The first verdict, from the parameters' memory alone."""
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
        """Shows the estimate before steps are timed."""
        self.estimated.emit(replace(text, balance=balance_text(run, None, self._timed(run))))

    def _timed(self, run: ResolvedRun) -> Timed:
        found = self.timing.found
        if found is not None and all(step_key(device, run) in found.steps for device in run.devices):
            return Timed.YES
        if self._is_training:
            return Timed.WHILE_TRAINING
        return Timed.NOW if self.is_measuring else Timed.NO

    def measure_again(self) -> None:
        """Repeats a measurement that was not possible before."""
        self.timing.update(None)
        self.timing.forget()
        if self._answers.answer is None or self._answers.answer.error is not None:
            self._answers.forget()
            self._answers.ask_again()
        else:
            self._add_up()

    def _on_estimated(self, text: MemoryText) -> None:
        self.shown = text

    def _measure(self, run: ResolvedRun, key: str) -> Measured:
        """In a worker thread. A newer draft ends it, and a sheet that closes: what was started then needs the cores."""

        def cancelled() -> bool:
            return self._key != key or not self._answers.is_watched

        count_key = f"{run.recipe.folder} {depends_on(run.config)}"

        def counted(count: ParameterCount) -> None:
            self._count_found.emit(count_key, count)

        (run, _), is_counted = run.fitted(), count_key in self._counts
        if known_figures(run) is None and not is_counted:  # the process begins at once, and rests itself
            figures = find_figures(run, cancelled=cancelled, counted=counted, rest_s=REST_S)
        else:
            if known_figures(run) is None or known_baselines(run.platform) is None:
                _rest(cancelled)
            figures = find_figures(run, cancelled=cancelled)
        counted(ParameterCount(figures.parameters, figures.trainable))
        return Measured(run.config, figures, find_baselines(run, cancelled=cancelled))

    def _on_count_found(self, key: str, count: ParameterCount) -> None:
        while len(self._counts) >= _KEPT:
            del self._counts[next(iter(self._counts))]
        self._counts[key] = count
        if key == self._count_key:
            self.counted.emit(count)
            if self._run is not None and self._answers.answer is None:
                self._show_least(self._run)

    def _add_up(self) -> None:
        run, known = self._run, self._answers.answer
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
        self.timing.update(fitted, figures, is_training=self._is_training)
        found, is_timing, timed = self.timing.found, self.timing.is_measuring, self._timed(fitted)

        def work() -> MemoryText:
            made = overview(fitted, figures, baselines, free_now(samples, folder), found, read_prices())
            text = memory_text(made, is_timing=found is None and is_timing)
            if not can_balance(fitted):
                return text
            gain = None if found is None else balance_gain(fitted, figures, found)
            return replace(text, balance=balance_text(fitted, gain, timed, past_balance_gain(fitted, folder)))

        def done(text: MemoryText) -> None:
            if self._run is run:
                self.estimated.emit(text)

        self._runner.run(Operation(work, done, lambda error: done(unknown_text(error)), topic="memory"))


def _rest(cancelled: Callable[[], bool]) -> None:
    """Waits `REST_S`.

    Raises:
        CancelledError: The answer is not waited for any more.
    """
    over = time.monotonic() + REST_S
    while time.monotonic() < over:
        if cancelled():
            raise CancelledError
        time.sleep(LOOK_S)
