"""Run summary: the state and the few figures that the toolbar shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.run_data.run_series import RunSeries
from core.config.mode import Mode, mode_label
from core.machine.devices.names import label_by_uuid
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.state import RunState

RATE_ROWS: Final = 64
"""Newest steps that the time left is estimated from: enough to be steady, few enough to follow a change."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the header shows of a run.

    Attributes:
        word: Its state.
        detail: What it is doing just now ("rank 1: importing torch"), or what is wrong with it; else on what it trains.
        step: None where there is nothing to say: no run, or a script of which no step was recognised.
        epoch: As a person counts: a recipe's first is 1; a script's number is the one it printed.
        seconds_left: Estimated; None when not known.
    """

    word: str = "idle"
    detail: str = ""
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    seconds_left: float | None = None
    tokens_per_s: float | None = None

    @property
    def share(self) -> float | None:
        """How much of the steps is done, 0..1; None when it is not known."""
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, self.step / self.total_steps)


def summarise(state: RunState | None, series: RunSeries, names: Mapping[str, str] | None = None) -> RunSummary:
    """A run's summary from its state and what its ranks reported.

    Args:
        state: As its host says it is; None without a run.
        series: What its ranks reported.
        names: What devices are called, by UUID.
    """
    if state is None:
        return RunSummary()
    clock = series.clock()
    newest = clock.last("step")
    step = max(state.step, int(newest)) if newest is not None and state.is_live else state.step
    training = state.state == "training"
    is_script = state.recipe == USER_SCRIPT
    paced = training and not state.trouble  # while nothing is written the last steps say nothing about the pace
    doing = _doing(state) or (_place(state, names or {}) if training and step else "")
    return RunSummary(
        word=state.state,
        detail=" · ".join(text for text in (doing, state.goal) if text),
        step=None if is_script and not step else step,
        total_steps=state.total_steps,
        epoch=(state.epoch or None) if is_script else state.epoch + 1,
        seconds_left=_seconds_left(series, step, state.total_steps) if paced else None,
        tokens_per_s=state.tokens_per_s if paced else None,
    )


def _doing(state: RunState) -> str:
    if not state.is_live:
        return ""
    return state.trouble.get("title", state.phase) if state.trouble else state.phase


def _place(state: RunState, names: Mapping[str, str]) -> str:
    """On what it trains, in a word or two."""
    if len(state.devices) == 1:
        (uuid,) = state.devices
        name = label_by_uuid(uuid, names).partition(" (")[0]
        return f"on {name} alone" if state.fallback else f"on {name}"
    mode = "independently" if state.mode == Mode.INDEPENDENT else mode_label(state.mode)
    return f"{mode} on {len(state.devices)} devices" if state.devices else ""


def _seconds_left(series: RunSeries, step: int, total: int | None) -> float | None:
    clock = series.clock()
    if not total or clock.rows < 3 or "step" not in clock.columns or "ts" not in clock.columns:
        return None
    first, last = max(0, clock.rows - RATE_ROWS), clock.rows
    steps = clock.columns["step"].read(first, last)
    times = clock.columns["ts"].read(first, last)
    made, took = float(steps[-1] - steps[0]), float(times[-1] - times[0])
    if not made > 0 or not took > 0:
        return None
    return max(0, total - step) * took / made
