"""Run summary: the state of a run, what it is, and how far it is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.config.mode import Mode
from core.formatting import count, day_time, duration
from core.machine.devices.names import SEPARATOR, label_by_uuid
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.naming import begun_text, devices_text

if TYPE_CHECKING:
    from app.run_data.run_series import RunSeries
    from core.run_folder.state import RunState

# Newest steps that the time left is estimated from: enough to be steady, few enough to follow a change.
RATE_ROWS: Final = 64
# More devices of different models than this are counted, not named.
DEVICES_NAMED: Final = 3
_PERCENT: Final = re.compile(r"(\d{1,3})(?:\.\d+)?\s?%")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The header's texts about a run.

    Attributes:
        word: Its state; empty while that is not known.
        about: What it is: "MiniGPT · stdlib · DDP on RTX 6000 Ada + RTX 4090 · 12:17".
        about_short: The most important part of it: "DDP × 2".
        doing: What it is doing just now ("CPU 1: importing torch"), or what is wrong with it; empty while it trains.
        goal: How far it is towards a goal other than a number of steps ("450 of 600 episodes").
        step: None where there is nothing to say: no run, or a script of which no step was recognised.
        epoch: As a person counts: a recipe's first is 1; a script's number is the one it printed.
        seconds_left: Estimated; None when not known.
        seconds_run: For how long it was at work, pauses left out; None when not known.
    """

    word: str = ""
    about: str = ""
    about_short: str = ""
    doing: str = ""
    goal: str = ""
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    seconds_left: float | None = None
    seconds_run: float | None = None
    is_live: bool = False

    @property
    def share(self) -> float | None:
        """Share of the steps that is done, 0..1, or of a phase that says a percentage; None when not known."""
        if self.doing and (found := _PERCENT.search(self.doing)):
            return min(1.0, int(found[1]) / 100)
        if self.step is None or not self.total_steps or self.word == "starting":
            return None
        return min(1.0, self.step / self.total_steps)

    @property
    def is_preparing(self) -> bool:
        """True while the run starts without a known share: it imports torch, or warms up."""
        return self.is_live and self.word == "starting" and self.share is None


def progress_text(summary: RunSummary, now: float) -> tuple[str, str]:
    """Steps, and time left: ``("502 / 1,000", "3 m 36 s left · ends 14:32")``; `now` is in Unix seconds."""
    steps = ""
    if summary.step is not None and (summary.step or not summary.doing):
        steps = f"{count(summary.step)} / {count(summary.total_steps)}" if summary.total_steps else count(summary.step)
        if not summary.total_steps:
            steps = f"step {steps}"
    rest = [summary.doing, summary.goal]
    left = summary.seconds_left
    if left is not None and summary.is_live:
        rest += [f"{duration(left)} left", f"ends {day_time(now + left, now)}"]
    elif not summary.is_live and summary.seconds_run is not None and summary.word:
        took = duration(summary.seconds_run)
        rest.append(f"took {took}" if summary.word == "finished" else f"after {took}")
    return steps, SEPARATOR.join(part for part in rest if part)


def summarise(
    state: RunState,
    series: RunSeries,
    labels: Mapping[str, str] | None = None,
    recipe: str = "",
    title: str = "",
) -> RunSummary:
    """Summarise a run from its state and the series of its ranks.

    `labels` are names of devices by UUID, `recipe` names a run without a name, `title` stands in the header already.
    """
    clock = series.clock()
    newest = clock.last("step")
    step = max(state.step, int(newest)) if newest is not None and state.is_live else state.step
    is_script = state.recipe == USER_SCRIPT
    # While nothing is written the pace is not known.
    paced = state.state == "training" and not state.trouble
    return RunSummary(
        word=state.state,
        about=_about(state, labels or {}, recipe, title),
        about_short=devices_text(state),
        doing=_doing(state),
        goal=state.goal,
        step=None if is_script and not step else step,
        total_steps=state.total_steps,
        epoch=(state.epoch or None) if is_script else state.epoch + 1,
        seconds_left=_seconds_left(series, step, state.total_steps) if paced else None,
        seconds_run=seconds_run(series),
        is_live=state.is_live,
    )


def seconds_run(series: RunSeries) -> float | None:
    """Seconds from a run's launch to its last step, pauses left out; None when not known."""
    clock = series.clock()
    bounds = clock.bounds("ts")
    if bounds is None:
        return None
    first = min((bounds[0], *series.launches[:1]))
    paused = sum(behind - before for before, behind in series.pauses(clock, first, bounds[1]))
    return max(0.0, bounds[1] - first - paused)


def _about(state: RunState, labels: Mapping[str, str], recipe: str, title: str) -> str:
    name = (state.name if state.name != state.run_id else "") or recipe or state.recipe
    if title.startswith(name):
        name = ""
    return SEPARATOR.join(part for part in (name, _place(state, labels), begun_text(state.created)) if part)


def _doing(state: RunState) -> str:
    if not state.is_live:
        return ""
    if state.trouble:
        return state.trouble.get("title", state.phase)
    if state.phase.strip(" .…").casefold() == state.state:
        return ""  # the state's word stands beside it
    return state.phase[:1].upper() + state.phase[1:]


def _place(state: RunState, labels: Mapping[str, str]) -> str:
    """Devices and mode: "DDP on 2 × H100"."""
    names = [label_by_uuid(uuid, labels).rpartition(SEPARATOR)[2] for uuid in state.devices]
    mode = Mode.read(state.mode)
    if len(names) == 1:
        return f"{names[0]} alone" if state.fallback else names[0]
    where = devices_phrase(names)
    machines = f", {len(state.nodes)} machines" if len(state.nodes) > 1 else ""
    return f"{mode.label} on {where}{machines}" if where and mode is not Mode.AUTO else where


def devices_phrase(names: Sequence[str]) -> str:
    """ "RTX 6000 Ada + RTX 4090", "8 × H100", "5 devices"."""
    counted = Counter(names)
    if len(counted) > DEVICES_NAMED:
        return f"{len(names)} devices"
    return " + ".join(name if many == 1 else f"{many} × {name}" for name, many in counted.items())


def _seconds_left(series: RunSeries, step: int, total: int | None) -> float | None:
    clock = series.clock()
    if not total or clock.rows < 3 or "step" not in clock.columns or "ts" not in clock.columns:
        return None
    first, last = max(0, clock.rows - RATE_ROWS), clock.rows
    steps = clock.columns["step"].read(first, last)
    times = clock.columns["ts"].read(first, last)
    resumed = max((mark.ts for mark in series.marks if mark.kind == "resumed"), default=-math.inf)
    # The pause before it says nothing about the pace.
    since = times >= resumed
    if since.sum() < 3:
        return None
    steps, times = steps[since], times[since]
    made, took = float(steps[-1] - steps[0]), float(times[-1] - times[0])
    if not made > 0 or not took > 0:
        return None
    return max(0, total - step) * took / made
