"""Measures the parts of a draft's time: steps, link and earlier runs, once its memory is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject

from app.threads.background import OperationRunner
from app.threads.newest_answer import NewestAnswer
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.shape import run_shape
from core.measure.estimate.speed import TimeFigures
from core.measure.estimate.steps import find_time, known_time, time_is_known
from core.measure.ranks import CancelledError

Rest = Callable[[Callable[[], bool]], None]
WHILE_TRAINING: Final = "Steps are timed once no run is training."


class TimingController(QObject):
    """The time figures of the newest draft, while the sheet is in sight.

    Args:
        runner: Carries the work out.
        runs_dir: Where links and earlier runs are kept.
        changed: Called when there is an answer.
        rest: Waits before something is measured; raises `CancelledError`.

    Attributes:
        runs_dir: As given.
    """

    def __init__(
        self, runner: OperationRunner, runs_dir: Path, changed: Callable[[], None], rest: Rest, parent: QObject
    ) -> None:
        super().__init__(parent)
        self.runs_dir, self._rest = runs_dir, rest
        self._key = ""
        self._is_training = False
        self._answers: NewestAnswer[TimeFigures | None] = NewestAnswer(
            runner, lambda _found: changed(), _without, self, is_kept=lambda found: found is not None
        )
        self.forget = self._answers.forget

    @property
    def found(self) -> TimeFigures | None:
        """About the newest draft; None while it is not known."""
        return self._answers.answer

    @property
    def is_measuring(self) -> bool:
        return self._answers.is_asking

    def set_watched(self, watched: bool) -> None:
        self._answers.set_watched(watched)

    def close(self) -> None:
        self._key = ""
        self._answers.close()

    def update(
        self, run: ResolvedRun | None, figures: ModelFigures | None = None, *, is_training: bool = False
    ) -> None:
        """Takes over a draft whose memory is known.

        Args:
            run: None: there is none yet, and nothing to measure.
            figures: Of its model.
            is_training: A run trains now. Timed steps would hold it up, and it would make them slower: they wait.
        """
        if run is None or figures is None:
            self._key = ""
            self._answers.ask("", None)
            return
        if is_training != self._is_training:
            self._is_training = is_training
            self._answers.forget()
        key = " ".join([run_shape(run), *(device.uuid for device in run.devices), "busy" if is_training else ""])
        if key != self._key:
            self._key = key
            self._answers.ask(key, lambda: self._earlier(run) if is_training else self._find(run, figures, key))

    def _earlier(self, run: ResolvedRun) -> TimeFigures:
        """What is known already, in a worker thread."""
        found = known_time(run, self.runs_dir)
        return found if time_is_known(run, self.runs_dir) else replace(found, note=WHILE_TRAINING)

    def _find(self, run: ResolvedRun, figures: ModelFigures, key: str) -> TimeFigures:
        """In a worker thread."""

        def cancelled() -> bool:
            return self._key != key or not self._answers.is_watched

        if not time_is_known(run, self.runs_dir):
            self._rest(cancelled)
        return find_time(run, figures, self.runs_dir, cancelled=cancelled)


def _without(error: RankdeckError) -> TimeFigures | None:
    """What an error leaves: nothing if a newer draft caused it, else its sentence."""
    return None if isinstance(error, CancelledError) else TimeFigures(note=error.cause)
